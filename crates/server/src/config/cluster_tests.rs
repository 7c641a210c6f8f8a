//! Tests of the keys for a cluster, together.

use super::tests::{parse, problem};
use super::*;

/// A list of nodes on this machine, with a secret. The first line is `nodename`.
fn cluster(names: &[&str], more: &str) -> String {
    let mut text = "nodename = a@127.0.0.1\ncluster.secret = 0123456789abcdefghij\n".to_owned();
    for (at, name) in names.iter().enumerate() {
        let n = at + 1;
        text += &format!(
            "cluster_formation.classic_config.nodes.{n} = {name}@127.0.0.1:{}\n",
            26720 + n
        );
    }
    text + more
}

fn warnings(text: &str) -> Vec<String> {
    parse(text).unwrap().warnings
}

#[test]
fn cluster_lists_its_nodes() {
    let text = cluster(&["a", "b"], "cluster_formation.classic_config.nodes.x = c@localhost\n");
    let config = parse(&text).unwrap();
    let nodes: Vec<String> = config
        .cluster
        .nodes
        .iter()
        .map(|node| format!("{} at {} by {}", node.name, node.address(), node.key))
        .collect();
    assert_eq!(
        nodes,
        [
            "a@127.0.0.1 at 127.0.0.1:26721 by cluster_formation.classic_config.nodes.1 (a.conf, line 3)",
            "b@127.0.0.1 at 127.0.0.1:26722 by cluster_formation.classic_config.nodes.2 (a.conf, line 4)",
            "c@localhost at localhost:25672 by cluster_formation.classic_config.nodes.x (a.conf, line 5)",
        ]
    );
    assert_eq!(config.warnings, [""; 0]);
    let own = config.cluster.listen_on("a@127.0.0.1");
    assert_eq!(own, ["127.0.0.1:26721".parse().unwrap()]);
    let chosen = parse(&format!("{text}listeners.cluster.1 = 127.0.0.2:7\n")).unwrap();
    assert_eq!(chosen.cluster.listen_on("a@127.0.0.1"), ["127.0.0.2:7".parse().unwrap()]);
    assert!(Config::default().cluster.listen_on("a@127.0.0.1").is_empty());
    // A later source replaces the list.
    let mut settings = Settings::default();
    settings.read_text(&text, Path::new("a.conf"), 0);
    let by = Source::CommandLine("--x");
    settings.set("cluster_formation.classic_config.nodes.1", "a@127.0.0.1", by);
    assert_eq!(settings.into_config().unwrap().cluster.nodes.len(), 1);
}

#[test]
fn cluster_names_each_node_once() {
    let key = "cluster_formation.classic_config.nodes";
    let twice = cluster(&["a", "b", "c"], &format!("{key}.4 = b@127.0.0.1:9\n"));
    assert_eq!(
        problem(&twice),
        format!("a.conf, line 6: {key}.4 must name another node than {key}.2, got 'b@127.0.0.1:9'")
    );
    let same_address = cluster(&["a"], &format!("{key}.2 = b@127.0.0.1:26721\n"));
    assert_eq!(
        problem(&same_address),
        format!(
            "a.conf, line 4: {key}.2 must have another address than 'a@127.0.0.1', {key}.1, got \
             'b@127.0.0.1:26721'"
        )
    );
    assert_eq!(
        problem(&cluster(&["a", "b", "c", "d", "e", "f", "g", "h"], "")),
        format!(
            "a.conf, line 10: {key}.8 must be left out, as a cluster has at most 7 nodes, got 'h@127.0.0.1:26728'"
        )
    );
    assert!(parse(&cluster(&["a", "b", "c", "d", "e", "f", "g"], "")).is_ok());
    assert_eq!(
        problem(&cluster(&["b", "c"], "")),
        format!(
            "a.conf, line 3: {key} must list this node, 'a@127.0.0.1' (see nodename); it lists \
             b@127.0.0.1, c@127.0.0.1"
        )
    );
    assert_eq!(
        problem("cluster_formation.peer_discovery_backend = k8s"),
        format!(
            "a.conf, line 1: cluster_formation.peer_discovery_backend must be classic_config, with every \
             node listed as {key}.N, or dns, with a host name for all nodes, such as a headless service of \
             Kubernetes; got 'k8s'"
        )
    );
}

/// Discovery by DNS, with a secret.
fn found(more: &str) -> String {
    format!(
        "nodename = a@a.nodes\ncluster.secret = 0123456789abcdefghij\nlisteners.cluster.default = 127.0.0.1:7\n\
         cluster_formation.peer_discovery_backend = dns\n{more}"
    )
}

#[test]
fn dns_needs_a_host_name_and_the_number_of_nodes() {
    let (hostname, size) = (
        "cluster_formation.dns.hostname = nodes.example\n",
        "cluster_formation.target_cluster_size_hint = 3\n",
    );
    let config = parse(&found(&format!("{hostname}{size}"))).unwrap();
    let dns = config.cluster.dns.clone().unwrap();
    assert_eq!(
        (dns.hostname.as_str(), dns.target_size, dns.key.as_str()),
        ("nodes.example", 3, "cluster_formation.dns.hostname (a.conf, line 5)")
    );
    assert!(config.cluster.is_on() && config.cluster.nodes.is_empty());
    // Nodes are elsewhere: their links should be encrypted.
    assert_eq!(config.warnings.len(), 1);
    assert!(config.warnings[0].contains("links are not encrypted (the nodes of 'nodes.example')"));
    let node = config.cluster.found_node("a@b.nodes", &dns);
    assert_eq!((node.address().as_str(), node.key == dns.key), ("b.nodes:7", true));
    let backend = "cluster_formation.peer_discovery_backend";
    assert_eq!(
        problem(&found(size)),
        format!(
            "a.conf, line 4: {backend} = dns needs cluster_formation.dns.hostname, a name with the addresses of all \
             nodes"
        )
    );
    assert!(problem(&found(hostname)).starts_with(&format!(
        "a.conf, line 4: {backend} = dns needs cluster_formation.target_cluster_size_hint, the number of nodes"
    )));
    let listed = "cluster_formation.classic_config.nodes.1 = a@a.nodes\n";
    assert_eq!(
        problem(&found(&format!("{hostname}{size}{listed}"))),
        format!(
            "a.conf, line 7: cluster_formation.classic_config.nodes must not be set, because {backend} is dns"
        )
    );
    let wrong = "cluster_formation.dns.hostname = a b\n";
    assert!(problem(&found(wrong)).contains("must be the name of a host, got 'a b'"));
    for size in ["0", "8", "x"] {
        let size = format!("cluster_formation.target_cluster_size_hint = {size}\n");
        assert!(problem(&found(&size)).contains("must be a number from 1 to 7"));
    }
    let two = size.replace('3', "2");
    assert!(
        parse(&found(&format!("{hostname}{two}"))).unwrap().warnings[0]
            .ends_with("counts 2 nodes: the loss of either one stops both; set 3")
    );
}

#[test]
fn host_name_without_dns_is_warned_of() {
    let keys = "cluster_formation.dns.hostname = nodes\n\
                cluster_formation.target_cluster_size_hint = 3\n";
    let without = "has no effect without cluster_formation.peer_discovery_backend = dns";
    assert_eq!(
        warnings(keys),
        [format!("a.conf, line 1: cluster_formation.dns.hostname {without}")]
    );
    // For the health check.
    assert_eq!(parse(keys).unwrap().cluster.discovery.target_size(), 3);
}

#[test]
fn even_numbers_of_nodes_are_warned_of() {
    let key = "a.conf, line 3: cluster_formation.classic_config.nodes lists";
    for (names, warning) in [
        (&["a"][..], "this node only: nothing is replicated"),
        (&["a", "b"], "2 nodes: the loss of either one stops both; list 3"),
        (&["a", "b", "c", "d"], "4 nodes, which survive the loss of 1, as 3 do"),
        (&["a", "b", "c", "d", "e", "f"], "6 nodes, which survive the loss of 2, as 5 do"),
    ] {
        assert_eq!(warnings(&cluster(names, "")), [format!("{key} {warning}")]);
    }
    assert_eq!(warnings(&cluster(&["a", "b", "c", "d", "e"], "")), [""; 0]);
    assert_eq!(
        warnings("listeners.cluster.default = 1"),
        [
            "a.conf, line 1: listeners.cluster has no effect without cluster_formation.classic_config.nodes, before the \
             node has joined a cluster"
        ]
    );
}

#[test]
fn cluster_needs_a_secret() {
    let none = cluster(&["a", "b", "c"], "").replace("cluster.secret = 0123456789abcdefghij\n", "");
    let options = parse(&cluster(&["a"], "")).unwrap().cluster;
    let folder = std::env::temp_dir().join(format!("leveret-cookie-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let without = ClusterOptions { secret: None, ..options };
    let missing = without.read_secret(Some(&folder)).unwrap_err();
    assert!(
        missing.starts_with("the links of a cluster need a secret: write it into a file and set")
    );
    std::fs::write(folder.join(".erlang.cookie"), "ABCDEFGHIJKLMNOPQRST\n").unwrap();
    assert_eq!(without.read_secret(Some(&folder)).as_deref(), Ok("ABCDEFGHIJKLMNOPQRST"));
    let file = folder.join("secret");
    let by_file = format!("{none}cluster.secret_file = {}\n", file.display());
    std::fs::write(&file, " short \n").unwrap();
    assert_eq!(
        problem(&by_file),
        format!(
            "a.conf, line 5: the secret of the cluster, cluster.secret_file {}, has 5 bytes; it must have 8 to 1024",
            file.display()
        )
    );
    std::fs::write(&file, "0123456789\n").unwrap();
    let warned = warnings(&by_file);
    assert!(
        warned.iter().any(|warning| warning.contains("the secret of the cluster is short")),
        "{warned:?}"
    );
    // The value wins over the file.
    let both = parse(&format!("{by_file}cluster.secret = 0123456789abcdefghij\n")).unwrap();
    assert_eq!(both.cluster.read_secret(None).as_deref(), Ok("0123456789abcdefghij"));
    let shown: Vec<String> = both.effective.iter().map(ToString::to_string).collect();
    assert!(!shown.join("").contains("0123456789abcdefghij"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn links_over_a_network_need_tls_or_are_warned_of() {
    let away = "cluster_formation.classic_config.nodes.3 = c@10.0.0.3\n";
    let listener = "listeners.cluster.default = 25672\n";
    let plain = cluster(&["a", "b"], &format!("{away}{listener}"));
    assert_eq!(
        warnings(&plain),
        [
            "a.conf, line 6: links are not encrypted ('c@10.0.0.3', the listener on [::]:25672): everybody on the way \
          reads all messages; set cluster.tls.certfile, .keyfile and .cacertfile"
        ]
    );
    let closed = warnings(&cluster(&["a", "b"], away));
    assert!(
        closed.iter().any(|warning| warning.ends_with("this node listens on 127.0.0.1:26721 only")),
        "{closed:?}"
    );
    assert_eq!(
        problem(&format!("{plain}cluster.tls.required = true\n")),
        "a.conf, line 7: links with TLS need cluster.tls.certfile\n\
         leveret: a.conf, line 7: links with TLS need cluster.tls.keyfile\n\
         leveret: a.conf, line 7: links with TLS need cluster.tls.cacertfile"
    );
    let files = "cluster.tls.certfile = Cargo.toml\ncluster.tls.keyfile = Cargo.toml\n\
                 cluster.tls.cacertfile = Cargo.toml\ncluster.tls.required = true\n";
    let safe = parse(&format!("{plain}{files}")).unwrap();
    assert_eq!((safe.warnings.len(), safe.cluster.requires_tls), (0, true));
    let by_default = parse(&cluster(&["a", "b"], &format!("{away}{files}"))).unwrap();
    assert_eq!(by_default.cluster.listen_on("a@127.0.0.1"), ["[::]:26721".parse().unwrap()]);
}

#[test]
fn partition_handling_is_accepted_without_effect() {
    assert_eq!(
        warnings("cluster_partition_handling = autoheal"),
        [
            "a.conf, line 1: cluster_partition_handling has no effect: a minority of the nodes always pauses"
        ]
    );
}
