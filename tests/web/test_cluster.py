"""The page of a cluster: its nodes and links, its replicas, what administrators do with leads, and what a lost node leaves."""

import re

import pika
import pytest
from playwright.sync_api import expect

from brokers import quoted
from browsing import ask_now, photograph, segment
from clients import connect
from clusters import Cluster
from conftest import running
from patience import eventually
from proxy import Proxy

A, B, C, D = ("a@127.0.0.1", "b@127.0.0.1", "c@127.0.0.1", "d@127.0.0.1")
# A name that would be an element if it were not escaped.
ODD = "<b>odd</b>"
REFRESH_MS = 1000


@pytest.fixture(scope="module")
def whole(request, tmp_path_factory):
    """Three nodes that all tests of a process share. Any of them may lead a vhost."""
    yield from started(request, tmp_path_factory.mktemp("cluster"), [ODD, "orders"])


@pytest.fixture
def fragile(request, tmp_path):
    """Three nodes for a test that ends some of them."""
    yield from started(request, tmp_path, ["bills", "orders"])


def started(request, directory, vhosts):
    cluster = Cluster(request.config.getoption("--leveret-bin"), directory)
    try:
        node = cluster.start_all()
        for vhost in vhosts:
            node.api.do("PUT", f"/api/vhosts/{quoted(vhost)}", {})
            for one in cluster.nodes.values():
                eventually(lambda one=one, vhost=vhost: one.api.request("GET", f"/api/vhosts/{quoted(vhost)}")[1].get("leader"))
        yield cluster
    finally:
        cluster.stop()


def leader(cluster, vhost):
    """The node that leads a vhost, once a running node knows it."""
    node = next(one for one in cluster.nodes.values() if one.alive)
    return eventually(lambda: node.api.request("GET", f"/api/vhosts/{quoted(vhost)}")[1].get("leader"))


def connection(node, name):
    """A client of a node, with a name for lists."""
    return connect(node, client_properties={"connection_name": name})


def row_of(page, table, text):
    """The row of a table whose first cell has this text."""
    exactly = re.compile(f"^{re.escape(text)}$")
    return page.locator(f"[data-test={table}] > tbody > tr").filter(has=page.locator("td:first-child").get_by_text(exactly))


def transfer(page, vhost, to):
    """Lets a node lead a vhost, by clicks."""
    row_of(page, "replicas", vhost).locator("[data-test=transfer]").click()
    expect(page.locator("[data-test=consequences]")).to_contain_text("Nothing is lost")
    page.select_option("[data-test=transfer-to]", to)
    page.click("[data-test=transfer-dialog] [data-test=submit]")
    expect(row_of(page, "replicas", vhost).locator("[data-test=leader]")).to_have_text(to)


def test_nodes_and_links_of_a_cluster_are_listed(whole, site_of):
    page = site_of(whole.nodes[A]).log_in(at="#/nodes")
    rows = page.locator("[data-test=nodes] > tbody > tr")
    expect(rows).to_have_count(3)
    for name in whole.names:
        expect(row_of(page, "nodes", name)).to_contain_text("running")
    expect(row_of(page, "nodes", A)).to_contain_text("this node")
    # The clock of the same machine, and a round trip that takes some time.
    expect(row_of(page, "nodes", B)).to_contain_text(re.compile(r"\d (ms|s)"))
    links = page.locator("[data-test=links] tbody tr")
    expect(links).to_have_count(6)
    expect(links.first).to_contain_text(re.compile(r"[\d.]+ (ms|s)"))
    leads = row_of(page, "nodes", leader(whole, "/")).locator("td").nth(2)
    expect(leads).to_have_text(re.compile(r"[1-3]"))
    expect(page.locator("[data-test=cluster-name]")).to_have_text("cluster of 3 nodes")
    site_page = page.locator("[data-test=overview-nodes] > tbody > tr")
    page.click("[data-test=nav-overview]")
    expect(site_page).to_have_count(3)
    # Not cut off by the edge of the table.
    frame = page.locator("[data-test=overview-nodes]").locator("xpath=..").bounding_box()
    button = row_of(page, "overview-nodes", B).locator("[data-test=drain]").bounding_box()
    assert button["x"] + button["width"] <= frame["x"] + frame["width"]
    for table in ("listeners", "web-contexts"):
        for name in whole.names:
            expect(page.locator(f"[data-test={table}] tbody tr", has_text=name).first).to_be_visible()


def test_lead_is_transferred_by_clicks(whole, site_of):
    page = site_of(whole.nodes[A]).log_in(at="#/replicas", refresh_ms=REFRESH_MS)
    expect(page.locator("[data-test=no-stop]")).to_be_visible()
    expect(row_of(page, "replicas", ODD).locator("[data-test=member]")).to_have_count(3)
    expect(row_of(page, "replicas", "Users, virtual hosts and parameters")).to_contain_text("3 of 3 run")
    to = next(name for name in whole.names if name != leader(whole, ODD))
    transfer(page, ODD, to)
    eventually(lambda: leader(whole, ODD) == to)
    expect(row_of(page, "replicas", ODD).locator("[data-test=member]", has_text=f"{to} leader")).to_be_visible()


def test_lead_is_transferred_on_the_page_of_a_vhost(whole, site_of):
    page = site_of(whole.nodes[A]).log_in(at="#/admin/vhosts", refresh_ms=REFRESH_MS)
    row = row_of(page, "vhosts", "orders")
    before = leader(whole, "orders")
    expect(row.locator("[data-test=leader]")).to_have_text(before)
    expect(row).to_contain_text("a, b, c")
    row.locator("td:first-child a").click()
    members = page.locator("[data-test=vhost-members]")
    expect(members).to_contain_text("3 of 3 run")
    to = next(name for name in whole.names if name != before)
    members.locator("[data-test=transfer]").click()
    page.select_option("[data-test=transfer-to]", to)
    page.click("[data-test=transfer-dialog] [data-test=submit]")
    expect(members.locator("[data-test=leader]")).to_have_text(to)
    eventually(lambda: leader(whole, "orders") == to)


def test_replica_is_removed_and_added_by_clicks(whole, site_of):
    page = site_of(whole.nodes[A]).log_in(at=f"#/admin/vhosts/{segment('orders')}", refresh_ms=REFRESH_MS)
    members = page.locator("[data-test=vhost-members]")
    expect(members).to_contain_text("3 of 3 run")
    expect(members.locator("[data-test=add-member]")).to_have_count(0)
    # The leader gives its replica up: another node leads first.
    before = leader(whole, "orders")
    members.locator("[data-test=member]", has_text=before).locator("[data-test=remove-member]").click()
    expect(page.locator("dialog")).to_contain_text("2 replicas will be left: the virtual host stands still while either node is down")
    page.click("[data-test=confirm-yes]")
    expect(members.locator("[data-test=member]")).to_have_count(2)
    expect(members).to_contain_text("2 of 2 run")
    eventually(lambda: leader(whole, "orders") != before)
    members.locator("[data-test=add-member]").click()
    page.select_option("[data-test=add-member-to]", before)
    page.click("[data-test=add-member-dialog] [data-test=submit]")
    expect(members.locator("[data-test=member]", has_text=f"{before} follower")).to_be_visible()
    expect(members).to_contain_text("3 of 3 run")


def test_leads_are_rebalanced_by_clicks(whole, site_of):
    page = site_of(whole.nodes[A]).log_in(at="#/replicas", refresh_ms=REFRESH_MS)
    for vhost in ("/", ODD, "orders"):
        if leader(whole, vhost) != A:
            transfer(page, vhost, A)
    page.click("[data-test=rebalance]")
    expect(page.locator("[data-test=consequences]")).to_contain_text(f"{A} leads 3")
    page.click("[data-test=confirm-yes]")
    expect(page.locator("[data-test=notes]")).to_contain_text("The leads are balanced.")
    eventually(lambda: {leader(whole, vhost) for vhost in ("/", ODD, "orders")} == {A, B, C})


def test_node_is_drained_and_revived_by_clicks(whole, site_of):
    here, there = connection(whole.nodes[B], "on b"), connection(whole.nodes[C], "on c")
    leader(whole, "/")
    page = site_of(whole.nodes[A]).log_in(at="#/replicas", refresh_ms=REFRESH_MS)
    # A client of another node stays, unless its vhost gets another leader.
    if leader(whole, "/") == B:
        there.close()
        transfer(page, "/", C)
        here, there = connection(whole.nodes[B], "on b"), connection(whole.nodes[C], "on c")
    page.click("[data-test=nav-nodes]")
    row_of(page, "nodes", B).locator("[data-test=drain]").click()
    expect(page.locator("[data-test=consequences]")).to_contain_text("1 connection is closed")
    page.click("[data-test=confirm-yes]")
    expect(row_of(page, "nodes", B)).to_contain_text("drained")
    expect(page.locator("[data-test=notes]")).to_contain_text(f"{B} is drained.")
    eventually(lambda: B not in {leader(whole, vhost) for vhost in ("/", ODD, "orders")})
    site_of(whole.nodes[A]).log_in(at=f"#/nodes/{segment(B)}").locator("[data-test=drained]", has_text="rabbitmq-upgrade revive").wait_for()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        here.process_data_events(time_limit=10)
    assert closed.value.reply_code == 320
    there.process_data_events(time_limit=0)
    there.channel().queue_declare("", exclusive=True)
    there.close()
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connection(whole.nodes[B], "refused")
    row_of(page, "nodes", B).locator("[data-test=revive]").click()
    page.click("[data-test=confirm-yes]")
    expect(row_of(page, "nodes", B)).to_contain_text("running")
    connection(whole.nodes[B], "served again").close()


def test_queues_and_connections_tell_their_nodes(whole, site_of):
    entry = next(name for name in whole.names if name != leader(whole, "/"))
    client = connection(whole.nodes[entry], "through another node")
    client.channel().queue_declare("kept", durable=True)
    client.channel().queue_declare("own", exclusive=True)
    site = site_of(whole.nodes[A])
    page = site.log_in(at=f"#/queues/{segment('/', 'kept')}/settings")
    expect(page.locator("[data-test=queue-leader]")).to_have_text(f"leader {leader(whole, '/')}")
    members = page.locator("[data-test=vhost-members]")
    expect(members.locator("[data-test=member]")).to_have_count(3)
    expect(members.locator("[data-test=member]", has_text=f"{leader(whole, '/')} leader")).to_be_visible()
    expect(members.locator("[data-test=transfer]")).to_have_count(0)
    site.go(page, f"#/nodes/{segment(entry)}")
    expect(page.locator("[data-test=relayed]")).to_have_text("1")
    expect(page.locator("[data-test=if-it-stops]")).to_contain_text(re.compile(r"\d+ clients? (is|are) closed"))
    site.go(page, f"#/nodes/{segment(leader(whole, '/'))}")
    expect(page.locator("[data-test=if-it-stops]")).to_contain_text("1 exclusive or transient queue is gone")
    expect(page.locator("[data-test=if-it-stops] [data-test=moved]")).to_contain_text("/")
    site.go(page, "#/connections")
    page.locator("[data-test=connections]").get_by_text("through another node").click()
    facts = page.locator("[data-test=connection] .facts")
    expect(facts.locator("div", has_text="Entry node")).to_contain_text(entry)
    expect(facts.locator("div", has_text="Leader")).to_contain_text(leader(whole, "/"))
    client.close()


def test_monitor_sees_replicas_and_no_buttons(whole, site_of):
    whole.nodes[A].api.do("PUT", "/api/users/watcher", {"password": "watcher", "tags": "monitoring"})
    site = site_of(whole.nodes[B])
    page = site.log_in("watcher", at="#/replicas")
    expect(row_of(page, "replicas", ODD).locator("[data-test=member]")).to_have_count(3)
    expect(page.locator("[data-test=transfer], [data-test=rebalance]")).to_have_count(0)
    site.go(page, "#/nodes")
    expect(page.locator("[data-test=nodes] > tbody > tr")).to_have_count(3)
    expect(page.locator("[data-test=drain]")).to_have_count(0)


def test_only_copy_of_a_vhost_is_told_before_its_node_goes(fragile, site_of):
    fragile.nodes[A].api.do("PUT", "/api/vhosts/solo", {"replicas": 1})
    only = leader(fragile, "solo")
    fragile.nodes[A].api.do("PUT", "/api/permissions/solo/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    other = next(name for name in fragile.names if name != only)
    site = site_of(fragile.nodes[other])
    page = site.log_in(at="#/replicas", refresh_ms=REFRESH_MS)
    expect(page.locator("[data-test=stop]")).to_have_count(1)
    expect(page.locator("[data-test=stop]")).to_contain_text(f"If {only} stopped, the only copy of 1 virtual host would be away: solo")
    site.go(page, f"#/nodes/{segment(only)}")
    expect(page.locator("[data-test=if-it-stops] [data-test=only-copy]")).to_contain_text("solo")
    page.locator("[data-test=drain]").click()
    expect(page.locator("[data-test=kept-leads]")).to_contain_text("It goes on leading 1 virtual host that no other node can lead: solo")
    expect(page.locator("[data-test=consequences] [data-test=only-copy]")).to_contain_text("When it is stopped, the only copy of 1 virtual host goes: solo")
    page.click("[data-cancel]")
    fragile.nodes[only].kill()
    site.go(page, "#/nodes")
    row_of(page, "nodes", only).locator("[data-test=forget]").click()
    lost = page.locator("[data-test=consequences] [data-test=only-copy] .loss")
    expect(lost).to_have_text("For good, the only copy of 1 virtual host goes")


def test_members_that_are_rebuilt_count_for_no_majority(whole, site_of):
    page = site_of(whole.nodes[A]).log_in(at="#/replicas")
    told = page.evaluate("""async () => {
      const { quorumsOf, majorityState, lossOf } = await import("/js/parts/majority.js");
      const replica = (node, state, voters, heard) => ({ node, vhost: "v", group: "vhost", state, voters, heard, term: 1 });
      const vhosts = [{ name: "v", leader: "a", members: ["a", "b", "c"] }];
      const of = (replicas, running) => quorumsOf(vhosts, replicas, new Set(running))[0];
      const ab = ["a", "b"];
      const rebuilt = [replica("a", "leader", ab, ab), replica("b", "follower", ab, []), replica("c", "quarantined", [], [])];
      const damaged = [replica("a", "leader", ["a", "b", "c"], ab), rebuilt[1], replica("c", "quarantined", ["a", "b", "c"], [])];
      const minority = [replica("a", "candidate", ab, []), rebuilt[2]];
      // The group of users and vhosts is called as a vhost may be.
      const metadata = rebuilt.map((one) => ({ ...one, group: "metadata" }));
      const words = (...given) => majorityState(of(...given))[1];
      return {
        rebuilt: words(rebuilt, ["a", "b", "c"]), damaged: words(damaged, ["a", "b", "c"]), minority: words(minority, ["a", "c"]),
        metadata: words(metadata, ["a", "b", "c"]), unknown: words([], ["a", "b"]),
        loss: Object.entries(lossOf("b", [of(rebuilt, ["a", "b", "c"])])).map(([kind, all]) => [kind, all.length]),
        moved: lossOf("a", [of(metadata, ["a", "b", "c"])]).moved.length,
      };
    }""")
    assert told["rebuilt"] == "2 of 2 voters run: none may stop"
    assert told["damaged"] == "2 of 3 run: none may stop"
    assert told["minority"] == "1 of 2 voters run: no majority"
    assert (told["metadata"], told["unknown"]) == ("3 of 3 run", "2 of 3 run: none may stop")
    assert dict(told["loss"]) == {"only": 0, "lost": 1, "moved": 0}
    assert told["moved"] == 1


def test_missing_parts_of_lists_are_told(whole, site_of):
    proxy = Proxy(whole.nodes[A].api.url)
    proxy.added = {"/api/queues": {"leveret-incomplete": B}}
    site = site_of(whole.nodes[A])
    site.url = proxy.url
    page = site.log_in(at="#/queues")
    bar = page.locator("[data-test=incomplete-answer]")
    expect(bar).to_contain_text(f"{B} did not answer in time")
    page.click("[data-test=nav-exchanges]")
    expect(bar).to_have_count(0)
    page.click("[data-test=nav-queues]")
    expect(bar).to_be_visible()
    proxy.added = {}
    ask_now(page)
    expect(bar).to_have_count(0)
    proxy.close()


def test_node_joins_and_another_one_is_forgotten_by_clicks(fragile, site_of):
    alone = fragile.start_alone(D)
    site = site_of(alone)
    page = site.log_in(at="#/nodes")
    page.click("[data-test=join]")
    page.fill("[data-test=seed]", f"{A}:1")
    page.click("[data-test=join-dialog] [data-test=submit]")
    expect(page.locator("[data-test=join-dialog]")).to_contain_text("cannot be asked at 127.0.0.1:1")
    page.fill("[data-test=seed]", f"{A}:{fragile.ports[A]}")
    page.click("[data-test=join-dialog] [data-test=submit]")
    eventually(lambda: len(fragile.seen(A)) == 4)
    page = site_of(fragile.nodes[A]).log_in(at="#/nodes", refresh_ms=REFRESH_MS)
    expect(row_of(page, "nodes", D)).to_contain_text("running")
    expect(page.locator("[data-test=forget], [data-test=join]")).to_have_count(0)
    fragile.nodes[C].stop()
    expect(row_of(page, "nodes", C)).to_contain_text("unreachable")
    row_of(page, "nodes", C).locator("[data-test=forget]").click()
    expect(page.locator("[data-test=consequences]")).to_contain_text("3 nodes of the cluster run without it")
    page.fill("[data-test=typed]", C)
    page.click("[data-test=confirm-yes]")
    expect(page.locator("[data-test=notes]")).to_contain_text(f"{C} is forgotten.")
    expect(page.locator("[data-test=nodes] > tbody > tr")).to_have_count(3)
    eventually(lambda: C not in fragile.seen(D))


def test_lost_nodes_are_told_on_every_page(fragile, site_of, screenshots):
    kept = leader(fragile, "/")
    client = connection(fragile.nodes[kept], "before")
    client.channel().queue_declare("kept", durable=True)
    others = [name for name in fragile.names if name != A]
    site = site_of(fragile.nodes[A])
    page = site.log_in(at="#/replicas", refresh_ms=REFRESH_MS)
    expect(page.locator("[data-test=no-stop]")).to_be_visible()
    fragile.nodes[others[0]].kill()
    expect(row_of(page, "replicas", "bills")).to_contain_text("2 of 3 run: none may stop")
    expect(row_of(page, "replicas", "bills").locator("[data-test=member]", has_text=f"{others[0]} unreachable")).to_be_visible()
    stop = page.locator("[data-test=stop]")
    expect(stop).to_have_count(2)
    expect(stop.first).to_contain_text("bills")
    for vhost in ("/", "bills", "orders"):
        leader(fragile, vhost)
    photograph(page, screenshots, "replicas")
    expect(page.locator("[data-test=no-metadata]")).to_have_count(0)
    site.go(page, "#/nodes")
    expect(row_of(page, "nodes", others[0])).to_contain_text("unreachable")

    fragile.nodes[others[1]].kill()
    site.go(page, "#/replicas")
    expect(page.locator("[data-test=without-majority]")).to_contain_text("3 virtual hosts have no majority now")
    expect(page.locator("[data-test=no-metadata]")).to_be_visible()
    site.go(page, f"#/queues/{segment('/', 'kept')}")
    expect(page.locator("[data-test=stale-answer]")).to_be_visible()
    expect(page.locator("[data-test=queue-leader]")).to_have_text("no leader")
    queue = fragile.nodes[A].api.do("GET", "/api/queues/%2F/kept")
    assert (queue["state"], queue["node"]) == ("down", "")

    for name in others:
        fragile.nodes[name].start_again()
    expect(page.locator("[data-test=no-metadata], [data-test=stale-answer]")).to_have_count(0)


@pytest.fixture
def alone(request, tmp_path):
    yield from running(request, tmp_path)


def test_page_without_a_cluster_shows_nothing_of_one(alone, site_of):
    client = connection(alone, "alone")
    client.channel().queue_declare("kept", durable=True)
    site = site_of(alone)
    page = site.log_in(at="#/nodes")
    expect(page.locator("[data-test=nodes] > tbody > tr")).to_have_count(1)
    expect(page.locator("[data-test=nodes] thead")).not_to_contain_text(re.compile("Leads|Round trip|Clock"))
    expect(page.locator("[data-test=links], [data-test=drain], [data-test=nav-replicas]")).to_have_count(0)
    site.go(page, "#/connections")
    expect(page.locator("[data-test=connections] thead")).not_to_contain_text(re.compile("Entry node"))
    page.locator("[data-test=connections]").get_by_text("alone").click()
    expect(page.locator("[data-test=connection] .facts")).not_to_contain_text(re.compile("Entry node|Leader"))
    site.go(page, f"#/queues/{segment('/', 'kept')}/settings")
    expect(page.locator("[data-test=arguments]")).to_be_visible()
    expect(page.locator("[data-test=queue-leader]")).to_have_count(0)
    site.go(page, "#/replicas")
    expect(page.locator("[data-test=no-cluster]")).to_be_visible()
    client.close()
