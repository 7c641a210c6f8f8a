"""The seeds that loops play: one, and those of a file."""

import types

import seeds

TEXT = """# Seeds
crash 17  # a message came twice
cluster-crash 5
crash 18
"""


def test_seeds_of_a_loop_are_those_of_its_name():
    assert seeds.kept("crash", TEXT) == [17, 18]
    assert seeds.kept("cluster-crash", TEXT) == [5]
    assert seeds.kept("netsplit", TEXT) == []


def test_loop_plays_its_own_seed_and_what_was_kept(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(seeds, "FILE", tmp_path / "seeds.txt")
    seeds.FILE.write_text(TEXT)
    played = []

    def run(_, seed):
        played.append(seed)
        return None if seed == 18 else 4

    assert seeds.play("crash", types.SimpleNamespace(seed=None), run) == 1
    assert played == [seeds.FIXED, 17, 18]
    assert seeds.play("crash", types.SimpleNamespace(seed=3), run) == 0
    assert played[3:] == [3] and "4 passed" in capsys.readouterr().out
