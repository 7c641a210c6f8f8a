"""What is done to the nodes and their links: drawn as data, so that a seed says all of it."""

import dataclasses
import time

from network import between, merged, one_way

HOLD, CUT = {"hold": True}, {"cut": True}
TICK_S = 0.05


@dataclasses.dataclass(frozen=True)
class Harm:
    """One harm. `victim` is a node, or None for the one that leads then."""

    kind: str
    victim: str | None = None
    others: tuple = ()  # in an order that is drawn
    rule: dict | None = None
    period_s: float = 0.0
    back_s: float = 0.0

    def __str__(self):
        said = [f"{key}={value}" for key, value in (
            ("victim", self.victim or "leader"), ("rule", self.rule), ("period_s", self.period_s),
            ("back_s", self.back_s)) if value]
        return f"{self.kind}({', '.join(said)})"


@dataclasses.dataclass(frozen=True)
class Step:
    """Harms at the same time, for some seconds; with `reset`, connections that were held are lost at the end."""

    harms: tuple
    seconds: float
    quiet_s: float
    reset: bool

    def __str__(self):
        return f"{' + '.join(map(str, self.harms))} for {self.seconds} s{', reset' * self.reset}"


def kinds(count):
    """What can be done to so many nodes; some kinds twice, because they matter more."""
    every = ["cut off", "cut off in", "cut off out", "cut off", "bridge", "parts", "slow", "throttle", "flap", "kill",
             "stop", "transfer", "suspend", "cut off and kill", "cut off and kill", "combined", "combined"]
    return every + ["halves", "halves", "ring"] * (count > 3)


def draw(rng, names, steps):
    """A run: every kind comes before one comes again."""
    drawn, rest = [], []
    for _ in range(steps):
        rest = rest or rng.sample(kinds(len(names)), len(kinds(len(names))))
        kind = rest.pop()
        if kind == "cut off and kill":
            harms = [draw_harm(rng, names, rng.choice(("cut off", "cut off in", "cut off out", "slow")))]
            harms.append(draw_harm(rng, names, "kill"))
        elif kind == "combined":
            simple = [one for one in kinds(len(names)) if "and" not in one and one != "combined"]
            harms = [draw_harm(rng, names, one) for one in rng.sample(simple, rng.randint(2, 3))]
        else:
            harms = [draw_harm(rng, names, kind)]
        drawn.append(Step(tuple(harms), round(rng.uniform(1.5, 6.0), 1), round(rng.uniform(0.2, 2.5), 1),
                          rng.random() < 0.4))
    return drawn


def draw_harm(rng, names, kind):
    others = tuple(rng.sample(names, len(names)))
    victim = None if rng.random() < 0.5 else rng.choice(names)
    rule, period_s, back_s = HOLD, 0.0, 0.0
    if kind in ("cut off", "bridge", "parts", "halves", "ring", "flap"):
        rule = rng.choice((HOLD, HOLD, CUT))
    if kind in ("slow", "throttle") and rng.random() < 0.3:
        kind += " all"
    if kind.startswith("slow"):
        rule = {"delay_ms": rng.randint(100, 400), "jitter_ms": rng.choice((0, 50, 200))}
    if kind.startswith("throttle"):
        rule = {"rate": rng.choice((10_000, 50_000, 200_000))}
    if kind in ("kill", "stop", "suspend", "transfer"):
        rule, back_s = None, round(rng.uniform(1.0, 8.0) if kind == "suspend" else rng.uniform(0.3, 3.0), 1)
    if kind == "flap":
        period_s = round(rng.uniform(0.1, 1.2), 2)
    return Harm(kind, victim, others, rule, period_s, back_s)


class Running:
    """A harm that has begun, with the nodes that it found."""

    def __init__(self, harm, cluster):
        self.harm, self.cluster = harm, cluster
        names = list(cluster.nodes)
        self.victim = harm.victim or cluster.leader_now() or names[0]
        self.others = [name for name in harm.others if name != self.victim]
        self.node = cluster.nodes[self.victim]
        self.is_done = False

    def rules(self, elapsed_s):
        """The rules of the links at this time."""
        rule, victim, others = self.harm.rule, self.victim, self.others
        match self.harm.kind:
            case "cut off":
                return between([victim], others, rule)
            case "cut off in":
                return one_way(others, [victim], rule)
            case "cut off out":
                return one_way([victim], others, rule)
            case "halves":
                few = [victim, *others[:len(others) // 2 - 1]]
                return between(few, others[len(few) - 1:], rule)
            case "parts":
                return between([victim, *others], [victim, *others], rule)
            case "bridge":
                half = len(others) // 2
                return between(others[:half], others[half:], rule)
            case "ring":
                ring = [victim, *others]
                near = {frozenset((one, other)) for one, other in zip(ring, [*others, victim])}
                return {pair: rule for pair in between(ring, ring, rule) if frozenset(pair) not in near}
            case "slow" | "throttle":
                return between([victim], others, rule)
            case "slow all" | "throttle all":
                return between([victim, *others], [victim, *others], rule)
            case "flap" if int(elapsed_s / self.harm.period_s) % 2 == 0:
                return between([victim], others, rule)
        return {}

    def act(self, elapsed_s):
        """Does at the beginning what is done to a process, and ends it in time."""
        is_over = elapsed_s >= self.harm.back_s
        if not self.is_done and not is_over and self.node.is_running():
            self.is_done = True
            match self.harm.kind:
                case "kill":
                    self.node.kill()
                case "suspend":
                    self.node.suspend()
                case "stop":
                    self.node.ask_to_stop()
                case "transfer":
                    self.cluster.ask_to_transfer(self.others[0])
        if is_over and self.node.is_suspended:
            self.node.resume()
        if is_over and self.is_done and not self.node.is_running():
            self.node.relaunch()
        if self.node.is_running() and not self.node.address:
            self.node.is_listening()


def minority(names, rules):
    """The nodes that reach no majority by links that work in both directions, directly or by others."""
    harmed = {pair for pair, rule in rules.items() if rule.get("hold") or rule.get("cut")}
    few = set()
    for name in names:
        reached, new = {name}, [name]
        while new:
            one = new.pop()
            near = {other for other in names if not {(one, other), (other, one)} & harmed} - reached
            reached |= near
            new.extend(near)
        if len(reached) <= len(names) // 2:
            few.add(name)
    return sorted(few)


def harm(cluster, step, make_silence):
    """Does what a step says, for its time, and heals nothing; the victims. `make_silence` watches a minority."""
    running = [Running(one, cluster) for one in step.harms]
    names = list(cluster.nodes)
    is_steady = all(one.kind != "flap" for one in step.harms)
    few = minority(names, merged(*(one.rules(0.0) for one in running))) if is_steady else []
    silence = make_silence(few) if few else None
    began, current = time.monotonic(), {}
    seconds = max([step.seconds, *(one.back_s for one in step.harms)])
    try:
        while (elapsed_s := time.monotonic() - began) < seconds:
            rules = merged(*(one.rules(elapsed_s) for one in running))
            if rules != current:
                cluster.network.rule(rules)
                current = rules
                if silence:
                    silence.begin()
            for one in running:
                one.act(elapsed_s)
            time.sleep(TICK_S)
    finally:
        if silence:
            silence.end()
    return [one.victim for one in running]
