//! The whole loop on a real kernel: traffic, an agent as an edge, an engine that learns, and knobs that change.

use std::time::Duration;

use rustix::process::Signal;
use trimtab_agent::{Standing, ask_why};
use trimtab_fleet_client::Name;
use trimtab_kernel::{Algorithm, Datapath, Flow};

use crate::common::{self, Wire, need_kernel, wait_for};
use crate::engine::Site;
use crate::setup::Setup;

const PORT: u16 = 7181;

/// With neither agent nor engine, a connection from there begins with what is known of its destination.
fn another_begins_with_what_is_known(wire: &Wire, setup: &Setup) {
    let another = wire.fetch(PORT, Duration::from_secs(1));
    let datapath = Datapath::load(&setup.options()).unwrap();
    let begun = || datapath.flows().find(|flow| flow.identity().towards);
    let knob = |flow: &Flow| flow.knob("startup_rate_max").unwrap();
    let first = wait_for("another connection", || Some(knob(&begun()?)));
    let default = Algorithm::Vivace.knobs().iter().find(|knob| knob.name == "startup_rate_max");
    assert!(first < default.unwrap().max / 2.0, "{first}");
    another.join().unwrap();
    wait_for("its end", || begun().is_none().then_some(()));
}

#[test]
fn what_the_engine_learns_from_the_traffic_comes_back_to_the_connections() {
    need_kernel!();
    let site = Site::at(0, "900ms", "");
    let service = site.folder.path().join("services/tv.toml");
    let text = std::fs::read_to_string(&service).unwrap().replace("\"1s\"", "\"3s\"");
    std::fs::write(&service, format!("connections_min = 1\n{text}")).unwrap();
    let engine = site.start();
    // It comes back to the same place later.
    let (config, address) = (site.config(), engine.url.trim_start_matches("http://").to_owned());
    let text = std::fs::read_to_string(&config).unwrap().replace("127.0.0.1:0", &address);
    std::fs::write(&config, text).unwrap();
    let setup = Setup::new("_g");
    let token = setup.folder().join("edge.token");
    std::fs::write(&token, &site.edge).unwrap();
    let fleet = format!(
        "[fleet]\nengine = {:?}\ntoken_file = \"edge.token\"\nfolder = \"edge\"\n",
        engine.url
    );
    let rule = format!(
        "{fleet}[[rule]]\nname = \"tv\"\nport = {PORT}\nnetns = \"/run/netns/tt-fleet-a\"\n\
         steer = \"fleet\"\nservice = \"tv\"\n"
    );
    setup.configure("", &rule);
    let wire = Wire::new("fleet");
    let mut agent = setup.start();
    wire.limit("20mbit", 100_000);
    let _server = wire.serve(&setup.options().name_of(Algorithm::Vivace), PORT, u64::MAX, 2);
    let client = wire.fetch(PORT, Duration::from_secs(150));

    let flow = wait_for("the connection", || agent.flow(PORT));
    assert_eq!((flow.rule.as_str(), flow.standing), ("tv", Standing::Customized), "{flow:?}");
    let why = || ask_why(&setup.socket(), &PORT.to_string()).unwrap().to_string();
    let follows = |version: u64| {
        (version..version + 9)
            .find(|version| why().contains(&format!("configuration {version} of tv/10.77.2.0/24")))
    };
    let told = wait_for("the first configuration", || {
        Some(why()).filter(|why| why.contains("configuration 0 of tv/10.77.2.0/24"))
    });
    assert!(told.contains("startup_rate_max = 20.0"), "{told}");
    // Three later ones: both points of a pair, and what came of them.
    let version = wait_for("what it learnt", || follows(3));

    // The engine knows what the connection got.
    let viewer = engine.client(&site.viewer);
    let name = Name { service: "tv".to_owned(), prefix: "10.77.2.0/24".to_owned() };
    let decisions = viewer.decisions(&name, 20).expect("decisions").decisions;
    let rewards: Vec<f64> = decisions.iter().filter_map(|decision| decision.reward).collect();
    println!("{rewards:?}");
    assert!(
        rewards.len() >= 2 && rewards.iter().all(|mbps| (1.0..21.0).contains(mbps)),
        "{rewards:?}"
    );

    // Without the engine everything goes on.
    engine.kill();
    wait_for("the message", || {
        let troubles = agent.status()?.troubles;
        troubles.iter().any(|what| what.contains("no engine answers at")).then_some(())
    });
    assert_eq!(agent.flow(PORT).expect("open").standing, Standing::Customized);
    // Nor does an agent that is killed change anything: the next one finds the knobs, and the
    // configuration that they are of.
    assert_eq!(agent.status().expect("it answers").ahead, 1);
    agent.signal(Signal::KILL);
    agent.wait();
    another_begins_with_what_is_known(&wire, &setup);
    let agent = setup.start();
    let flow = wait_for("the connection again", || agent.flow(PORT));
    assert_eq!(flow.standing, Standing::Customized, "{flow:?}");
    assert!(wait_for("what is kept", || follows(version)) >= version);
    // When the engine is back it learns on where it was.
    let engine = site.start();
    wait_for("that all is well", || agent.status()?.troubles.is_empty().then_some(()));
    let latest = || {
        let decisions = engine.client(&site.viewer).decisions(&name, 1).ok()?.decisions;
        decisions.first().map(|decision| decision.version)
    };
    let before = wait_for("its decisions", latest);
    wait_for("a later configuration", || latest().filter(|version| *version > before));
    // A decision is about what was in force in its interval, which was the version before the one
    // that the agent had got.
    assert!(before + 1 >= version, "it has forgotten nothing: {before} and {version}");
    drop((wire, client));
}
