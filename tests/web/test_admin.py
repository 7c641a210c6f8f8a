"""Users, vhosts, policies, limits, parameters and definitions, set on the page."""

import json

from browsing import segment
from clients import connect
from patience import becomes

MARKUP = '<img src=x onerror="document.title=1">'
ADMIN = ["users", "vhosts", "policies", "limits", "definitions", "parameters", "features", "logins"]


def hook(name):
    """What an element is found by."""
    return f"[data-test={name}]"


def get(broker, path):
    answer = broker.api.ask(f"/api/{path}")
    assert answer.status == 200, (path, answer.status)
    return answer.json


def status_of(broker, path):
    return broker.api.ask(f"/api/{path}").status


def fill(page, **fields):
    for name, value in fields.items():
        page.fill(hook(name.replace("_", "-")), value)


def submit(page, within=""):
    page.click(f"{within} {hook('submit')}")


def key(page, name, value):
    """Gives a key of a definition its value, as a user does: by a click on its name."""
    page.click(hook(f"key-{name}"))
    page.fill(hook(f"value-{name}"), value)


def says(page, selector, *texts):
    """Waits until an element has all these texts."""
    for text in texts:
        page.locator(selector, has_text=text).first.wait_for()


def publish(broker, queue, bodies):
    connection = connect(broker)
    channel = connection.channel()
    channel.confirm_delivery()
    for body in bodies:
        channel.basic_publish("", queue, body)
    connection.close()


def declare(broker, *queues, kind="classic"):
    for queue in queues:
        broker.api.do("PUT", f"/api/queues/%2F/{segment(queue)}", {"durable": True, "arguments": {"x-queue-type": kind}})


def test_every_page_has_its_title(site):
    page = site.log_in()
    for name in ADMIN:
        site.go(page, f"#/admin/{name}")
        page.wait_for_selector(hook(f"page-{name}"))
        assert page.locator(hook("error")).count() == 0


def test_a_policy_of_the_seeds_is_tried_saved_and_explained(site, broker):
    declare(broker, "sms")
    publish(broker, "sms", [b"x"] * 3)
    page = site.log_in(at="#/admin/policies")
    page.click(hook("add-policies"))
    fill(page, policy_name="TTL", policy_pattern=".*")
    key(page, "message-ttl", "60000")
    says(page, hook("definition"), "1 min")
    key(page, "dead-letter-exchange", "my-dlx")
    says(page, hook("dry-run-matched"), "1 queue")
    says(page, hook("dry-run"), "sms", "message-ttl", "60000")
    says(page, hook("warning-exchange"), "The exchange my-dlx does not exist")
    assert get(broker, "policies") == []
    submit(page)
    page.wait_for_selector(hook("page-policies"))
    says(page, hook("policies"), "TTL", "message-ttl")
    assert get(broker, "policies/%2F/TTL") == {
        "vhost": "/", "name": "TTL", "pattern": ".*", "apply-to": "queues", "priority": 0,
        "definition": {"dead-letter-exchange": "my-dlx", "message-ttl": 60000}}
    site.go(page, f"#/queues/{segment('/', 'sms')}/settings")
    says(page, hook("rulers"), "TTL")
    says(page, hook("setting-message-ttl"), "60000", "TTL")
    page.click(f"{hook('rulers')} a")
    assert page.wait_for_selector(hook("value-message-ttl")).input_value() == "60000"


def test_policy_that_would_drop_messages_asks_first(site, broker):
    declare(broker, "logs")
    publish(broker, "logs", [b"x"] * 5)
    page = site.log_in(at="#/admin/policies/new")
    fill(page, policy_name="short", policy_pattern="^logs$")
    key(page, "max-length", "2")
    says(page, hook("dry-run-fates"), "3 messages would exceed the length limit", "3 messages of these would be lost")
    submit(page)
    page.click(f"{hook('confirm')} >> text=Cancel")
    assert get(broker, "policies") == [] and get(broker, "queues/%2F/logs")["messages"] == 5
    submit(page)
    page.click(hook("confirm-yes"))
    becomes(lambda: get(broker, "queues/%2F/logs")["messages"], 2)


def test_a_policy_without_anchors_or_matches_has_a_warning(site, broker):
    declare(broker, "orders", "old-orders")
    page = site.log_in(at="#/admin/policies/new")
    key(page, "max-length", "9")
    fill(page, policy_pattern="orders")
    says(page, hook("warning-anchor"), "anywhere")
    says(page, hook("dry-run-matched"), "2 queues")
    fill(page, policy_pattern="^orders$")
    says(page, hook("dry-run-matched"), "1 queue")
    assert page.locator(hook("warning-anchor")).count() == 0
    fill(page, policy_pattern="^nothing$")
    says(page, hook("warning-nothing"), "matches now")
    key(page, "delivery-limit", "3")
    says(page, hook("warning-classic"), "delivery-limit")
    page.select_option(hook("policy-apply-to"), "quorum_queues")
    page.wait_for_selector(hook("warning-classic"), state="detached")


def test_a_wrong_value_has_its_reason(site, broker):
    page = site.log_in()
    for name, value, reason in [
        ("message-ttl", "-1", "-1 is not a valid message TTL"),
        ("max-length", "many", "many"),
        ("message-ttl", "", "message-ttl has no value"),
    ]:
        site.go(page, "#/admin/policies/new")
        fill(page, policy_name="wrong", policy_pattern=".*")
        key(page, name, value)
        submit(page)
        says(page, hook("form-error"), reason)
        assert get(broker, "policies") == []
        site.go(page, "#/health")
        page.wait_for_selector("main h1:text('Health')")


def test_a_wrong_pattern_is_told_while_it_is_typed(site):
    page = site.log_in(at="#/admin/policies/new")
    key(page, "max-length", "1")
    fill(page, policy_pattern="(")
    says(page, hook("dry-run-error"), "pattern should be regular expression")


def test_a_policy_is_changed_and_deleted(site, broker):
    declare(broker, "mails", kind="quorum")
    put = {"pattern": "^mails$", "apply-to": "queues", "priority": 3, "definition": {"delivery-limit": 5}}
    broker.api.do("PUT", "/api/policies/%2F/mails", put)
    page = site.log_in(at="#/admin/policies")
    page.click(f"{hook('policies')} {hook('policy-link')}")
    page.fill(hook("value-delivery-limit"), "7")
    page.select_option(hook("policy-apply-to"), "quorum_queues")
    fill(page, policy_priority="-0.5")
    says(page, hook("dry-run"), "delivery-limit", "7")
    submit(page)
    page.wait_for_selector(hook("page-policies"))
    changed = get(broker, "policies/%2F/mails")
    assert (changed["definition"], changed["apply-to"], changed["priority"]) == ({"delivery-limit": 7}, "quorum_queues", -0.5)
    page.click(f"{hook('policies')} {hook('delete')}")
    says(page, hook("confirm"), "1 queue")
    page.click(hook("confirm-yes"))
    becomes(lambda: get(broker, "policies"), [])
    page.wait_for_selector(f"{hook('policies')} >> text=None")


def test_an_operator_policy_wins_and_says_so(site, broker):
    declare(broker, "events")
    broker.api.do("PUT", "/api/policies/%2F/long", {"pattern": ".*", "definition": {"max-length": 1000}})
    page = site.log_in(at="#/admin/policies")
    page.click(hook("add-operator-policies"))
    fill(page, policy_name="ceiling", policy_pattern="^events$")
    # Operators may not say where dead letters go.
    assert page.locator(hook("key-dead-letter-exchange")).count() == 0
    key(page, "max-length", "10")
    submit(page)
    page.wait_for_selector(hook("page-policies"))
    assert get(broker, "operator-policies/%2F/ceiling")["definition"] == {"max-length": 10}
    site.go(page, f"#/queues/{segment('/', 'events')}/settings")
    says(page, hook("rulers"), "long", "ceiling")
    says(page, hook("setting-max-length"), "operator policy ceiling", "1000", "the lower value")


def test_a_user_comes_changes_and_goes(site, broker, name):
    page = site.log_in(at="#/admin/users")
    page.click(hook("add-user"))
    fill(page, user_name=name, user_password="first")
    page.check(hook("tag-monitoring"))
    fill(page, tags_others="night shift")
    submit(page, hook("user-form"))
    page.wait_for_selector(hook("page-user"))
    assert get(broker, f"users/{name}")["tags"] == ["management", "monitoring", "night shift"]
    assert broker.api.ask("/api/whoami", name, "first").status == 200

    # Tags alone leave the password as it is.
    page.uncheck(hook("tag-monitoring"))
    submit(page, hook("tags-form"))
    becomes(lambda: get(broker, f"users/{name}")["tags"], ["management", "night shift"])
    assert broker.api.ask("/api/whoami", name, "first").status == 200

    fill(page, new_password="second", new_password_again="secund")
    submit(page, hook("password-form"))
    says(page, hook("form-error"), "not the same")
    fill(page, new_password_again="second")
    submit(page, hook("password-form"))
    becomes(lambda: broker.api.ask("/api/whoami", name, "second").status, 200)
    assert broker.api.ask("/api/whoami", name, "first").status == 401

    page.check(hook("no-password"))
    submit(page, hook("password-form"))
    page.click(hook("confirm-yes"))
    becomes(lambda: broker.api.ask("/api/whoami", name, "second").status, 401)
    assert get(broker, f"users/{name}")["tags"] == ["management", "night shift"]

    page.click(hook("delete"))
    page.click(hook("confirm-yes"))
    page.wait_for_selector(hook("page-users"))
    assert status_of(broker, f"users/{name}") == 404


def test_a_user_with_a_name_that_cannot_be_is_refused(site, broker):
    page = site.log_in(at="#/admin/users")
    page.click(hook("add-user"))
    fill(page, user_name="x" * 9000, user_password="p")
    submit(page, hook("user-form"))
    page.wait_for_selector(f"{hook('user-dialog')} {hook('form-error')}")
    assert [user["name"] for user in get(broker, "users")] == ["guest"]


def test_own_password_can_be_changed_without_a_new_login(site, broker, name):
    broker.api.do("PUT", f"/api/users/{name}", {"password": "old", "tags": "administrator"})
    page = site.log_in(name, "old", at=f"#/admin/users/{name}")
    fill(page, new_password="new", new_password_again="new")
    submit(page, hook("password-form"))
    becomes(lambda: broker.api.ask("/api/whoami", name, "new").status, 200)
    site.go(page, "#/admin/users")
    says(page, "main table", name)
    assert page.locator(hook("login")).count() == 0


def test_tags_of_a_user_without_password_change(site, broker, name):
    broker.api.do("PUT", f"/api/users/{name}", {"tags": ""})
    page = site.log_in(at=f"#/admin/users/{name}")
    page.check(hook("tag-policymaker"))
    submit(page, hook("tags-form"))
    becomes(lambda: get(broker, f"users/{name}")["tags"], ["policymaker"])
    assert get(broker, f"users/{name}")["password_hash"] == ""


def test_permissions_are_given_changed_and_taken(site, broker, name):
    broker.api.do("PUT", f"/api/users/{name}", {"password": name, "tags": "management"})
    page = site.log_in(at=f"#/admin/users/{name}")
    page.click(f"{hook('permissions')} {hook('add')}")
    fill(page, access_vhost="/", access_configure="(", access_write="^order", access_read=".*")
    submit(page, hook("access-dialog"))
    says(page, f"{hook('access-dialog')} {hook('form-error')}", "regular expression")
    fill(page, access_configure="")
    submit(page, hook("access-dialog"))
    expected = {"user": name, "vhost": "/", "configure": "", "write": "^order", "read": ".*"}
    becomes(lambda: get(broker, f"users/{name}/permissions"), [expected])

    page.click(f"{hook('permissions')} {hook('edit')}")
    fill(page, access_read="^mine")
    submit(page, hook("access-dialog"))
    becomes(lambda: get(broker, f"users/{name}/permissions"), [expected | {"read": "^mine"}])

    page.click(f"{hook('topic-permissions')} {hook('add')}")
    fill(page, access_vhost="/", access_exchange="amq.topic", access_write="^{username}\\.", access_read=".*")
    submit(page, hook("access-dialog"))
    topic = {"user": name, "vhost": "/", "exchange": "amq.topic", "write": "^{username}\\.", "read": ".*"}
    becomes(lambda: get(broker, f"users/{name}/topic-permissions"), [topic])

    # The vhost tells the same.
    site.go(page, f"#/admin/vhosts/{segment('/')}")
    says(page, hook("permissions"), name, "^mine")
    page.click(f"{hook('topic-permissions')} {hook('remove')}")
    page.click(hook("confirm-yes"))
    becomes(lambda: get(broker, f"users/{name}/topic-permissions"), [])
    page.click(f"{hook('permissions')} tr:has-text('{name}') {hook('remove')}")
    page.click(hook("confirm-yes"))
    becomes(lambda: get(broker, f"users/{name}/permissions"), [])


def test_a_vhost_comes_changes_is_protected_and_goes(site, broker, name):
    page = site.log_in(at="#/admin/vhosts")
    page.click(hook("add-vhost"))
    fill(page, vhost_name=name, vhost_description="orders", vhost_tags="a, b")
    page.select_option(hook("vhost-type"), "quorum")
    page.select_option(hook("vhost-replicas"), "3")
    submit(page, hook("vhost-form"))
    page.wait_for_selector(hook("page-vhost"))
    fields = ("description", "tags", "default_queue_type", "replicas")
    becomes(lambda: [get(broker, f"vhosts/{name}")[field] for field in fields], ["orders", ["a", "b"], "quorum", 3])

    fill(page, vhost_description="old orders", vhost_tags="")
    page.select_option(hook("vhost-replicas"), "")
    submit(page, hook("vhost-form"))
    becomes(lambda: [get(broker, f"vhosts/{name}")[field] for field in fields], ["old orders", [], "quorum", None])

    page.click(hook("protect"))
    page.wait_for_selector("text=protected from deletion")
    delete_vhost(page, name)
    says(page, hook("error"), "protect")
    assert get(broker, f"vhosts/{name}")["protected_from_deletion"]
    page.click(hook("protect"))
    page.wait_for_selector(f"{hook('protect')}:has-text('Protect')")
    delete_vhost(page, name)
    page.wait_for_selector(hook("page-vhosts"))
    assert status_of(broker, f"vhosts/{name}") == 404


def delete_vhost(page, name):
    page.click(hook("delete"))
    # Its name must be typed first.
    assert page.locator(hook("confirm-yes")).is_disabled()
    page.fill(f"{hook('confirm')} input", name)
    page.click(hook("confirm-yes"))


def test_limits_are_set_and_removed(site, broker):
    page = site.log_in(at="#/admin/limits")
    vhosts, users = hook("limits-vhost"), hook("limits-user")
    page.fill(f"{vhosts} {hook('limit-of')}", "nowhere")
    page.fill(f"{vhosts} {hook('limit-value')}", "3")
    submit(page, vhosts)
    page.wait_for_selector(f"{vhosts} {hook('form-error')}")
    page.fill(f"{vhosts} {hook('limit-of')}", "/")
    page.select_option(f"{vhosts} {hook('limit-name')}", "max-queues")
    submit(page, vhosts)
    becomes(lambda: get(broker, "vhost-limits"), [{"vhost": "/", "value": {"max-queues": 3}}])
    page.fill(f"{users} {hook('limit-of')}", "guest")
    page.fill(f"{users} {hook('limit-value')}", "-1")
    submit(page, users)
    becomes(lambda: get(broker, "user-limits"), [{"user": "guest", "value": {"max-connections": -1}}])
    says(page, users, "no limit")
    page.click(f"{vhosts} {hook('remove')}")
    becomes(lambda: get(broker, "vhost-limits"), [])

    site.go(page, f"#/admin/vhosts/{segment('/')}")
    page.fill(f"{hook('limit-form')} {hook('limit-value')}", "5")
    submit(page, hook("limit-form"))
    becomes(lambda: get(broker, "vhost-limits"), [{"vhost": "/", "value": {"max-connections": 5}}])
    says(page, hook("limit-max-connections"), "5")


def test_parameters_and_the_name_of_the_cluster(site, broker):
    page = site.log_in(at="#/admin/parameters")
    globals_ = hook("global-parameters")
    page.click(f"{globals_} {hook('add')}")
    fill(page, parameter_name="owner", parameter_value="{team")
    submit(page, hook("parameter-dialog"))
    says(page, f"{hook('parameter-dialog')} {hook('form-error')}", "not valid JSON")
    fill(page, parameter_value='{"team": "<b>sms</b>"}')
    submit(page, hook("parameter-dialog"))
    becomes(lambda: status_of(broker, "global-parameters/owner"), 200)
    assert get(broker, "global-parameters/owner")["value"] == {"team": "<b>sms</b>"}
    says(page, globals_, "<b>sms</b>")
    page.click(f"{globals_} tr:has-text('owner') {hook('remove')}")
    page.click(hook("confirm-yes"))
    becomes(lambda: status_of(broker, "global-parameters/owner"), 404)
    fill(page, cluster_name_input="hare")
    submit(page, hook("cluster-form"))
    becomes(lambda: get(broker, "cluster-name"), {"name": "hare"})


def test_definitions_go_out_and_come_in(site, broker, tmp_path):
    declare(broker, "kept")
    # A number that JavaScript cannot hold stays what it is.
    large = 9007199254740993
    broker.api.do("PUT", "/api/queues/%2F/large", {"durable": True, "arguments": {"x-anything": large}})
    page = site.log_in(at="#/admin/definitions")
    with page.expect_download() as download:
        submit(page, hook("export-form"))
    file = tmp_path / "broker.json"
    download.value.save_as(file)
    queues = {queue["name"]: queue for queue in json.loads(file.read_text())["queues"]}
    assert queues.keys() == {"kept", "large"} and queues["large"]["arguments"]["x-anything"] == large

    for queue in queues:
        broker.api.do("DELETE", f"/api/queues/%2F/{queue}")
    page.set_input_files(hook("import-file"), file)
    says(page, hook("import-contents"), "2 queues", "1 user")
    submit(page, hook("import-form"))
    submit(page, hook("import-question"))
    becomes(lambda: sorted(queue["name"] for queue in get(broker, "queues")), ["kept", "large"])
    assert get(broker, "queues/%2F/large")["arguments"]["x-anything"] == large


def test_definitions_that_are_wrong_have_their_reason(site, broker, tmp_path):
    page = site.log_in(at="#/admin/definitions")
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps({"queues": [{"vhost": "/", "name": "a"}, {"vhost": "/", "name": "b", "arguments": {"x-expires": 0}}]}))
    page.set_input_files(hook("import-file"), file)
    submit(page, hook("import-form"))
    says(page, hook("form-error"), "queues, item 2")
    assert get(broker, "queues") == []
    file = tmp_path / "torn.json"
    file.write_text("{")
    page.set_input_files(hook("import-file"), file)
    says(page, hook("import-contents"), "not valid JSON")
    submit(page, hook("import-form"))
    says(page, hook("form-error"), "failed_to_parse_json")


def test_definitions_of_one_vhost_go_into_another(site, broker, tmp_path):
    for vhost in ("from", "to"):
        broker.api.do("PUT", f"/api/vhosts/{vhost}")
    broker.api.do("PUT", "/api/queues/from/moved", {"durable": True})
    page = site.log_in(at="#/admin/vhosts/from")
    with page.expect_download() as download:
        submit(page, hook("export-form"))
    download.value.save_as(tmp_path / "from.json")
    site.go(page, "#/admin/definitions")
    page.select_option(hook("definitions-scope"), label="vhost to")
    page.set_input_files(hook("import-file"), tmp_path / "from.json")
    submit(page, hook("import-form"))
    submit(page, hook("import-question"))
    becomes(lambda: [queue["name"] for queue in get(broker, "queues/to")], ["moved"])


def test_markup_in_names_is_text(site, broker):
    path = segment(MARKUP)
    broker.api.do("PUT", f"/api/vhosts/{path}", {"description": MARKUP, "tags": [MARKUP]})
    broker.api.do("PUT", f"/api/users/{path}", {"password": "p", "tags": [MARKUP]})
    broker.api.do("PUT", f"/api/permissions/{path}/{path}", {"configure": MARKUP, "write": "", "read": ""})
    broker.api.do("PUT", f"/api/policies/{path}/{path}", {
        "pattern": MARKUP, "definition": {"dead-letter-exchange": MARKUP}})
    broker.api.do("PUT", f"/api/global-parameters/{path}", {"value": MARKUP})
    page = site.log_in()
    for at in [*ADMIN, f"users/{path}", f"vhosts/{path}", f"policies/policies/{path}/{path}"]:
        site.go(page, f"#/admin/{at}")
        page.wait_for_selector("main h1")
        if at not in ("limits", "definitions", "features", "logins", "parameters") and "/" not in at:
            says(page, "main table", MARKUP)
        assert page.locator("main img").count() == 0
    says(page, "h1", MARKUP)


def test_actions_without_the_needed_tag_are_not_offered(site, broker, name):
    broker.api.do("PUT", f"/api/users/{name}", {"password": name, "tags": "management"})
    broker.api.do("PUT", f"/api/permissions/%2F/{name}", {"configure": ".*", "write": ".*", "read": ".*"})
    broker.api.do("PUT", "/api/policies/%2F/TTL", {"pattern": ".*", "definition": {"message-ttl": 1000}})
    page = site.log_in(name, at="#/admin/vhosts")
    page.wait_for_selector("main table >> text=Default virtual host")
    assert page.locator(hook("add-vhost")).count() == 0
    site.go(page, "#/admin/policies")
    says(page, hook("policies"), "TTL")
    assert page.locator(hook("add-policies")).count() == page.locator(hook("delete")).count() == 0
    site.go(page, "#/admin/limits")
    page.wait_for_selector(hook("limits-vhost"))
    assert page.locator(hook("submit")).count() == 0
    assert page.locator(hook("error")).count() == page.locator(hook("stale")).count() == 0


def test_logins_are_counted_and_counted_anew(site, broker):
    broker.api.ask("/api/whoami", "guest", "wrong")
    page = site.log_in(at="#/admin/logins")
    says(page, hook("logins"), "http")
    page.click(hook("reset"))
    page.click(hook("confirm-yes"))
    node = get(broker, "overview")["node"]
    becomes(lambda: [one["auth_attempts_failed"] for one in get(broker, f"auth/attempts/{segment(node)}") if one["protocol"] == "http"], [0])


def test_health_asks_for_a_port(site, broker):
    page = site.log_in(at="#/health")
    fill(page, own_value=str(broker.amqp[1]))
    submit(page, hook("own-check"))
    says(page, hook("own-result"), "passed")
    fill(page, own_value="1")
    submit(page, hook("own-check"))
    says(page, hook("own-result"), "failed")
