//! The agent chooses the tree of Muses' connections, over an emulated link.

use trimtab_agent::{Standing, ask_why};
use trimtab_kernel::Algorithm;
use trimtab_net::LossConfig;

use crate::common::{self, need_kernel, wait_for};
use crate::setup::Setup;
use crate::transfer::{download, link};

const PORT: u16 = 7171;

/// The model's first tree makes the window smaller, so there is no queue, and the states lie with
/// the other tree, which is chosen after the first report. The next connection to the same host
/// begins with that.
#[test]
fn the_tree_is_chosen_by_the_states_and_kept_for_the_next_connection() {
    need_kernel!();
    let setup = Setup::new("_y");
    std::fs::copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/trees/small"),
        setup.folder().join("small.trees"),
    )
    .expect("a copy");
    let rule = "[[rule]]\nname = \"phones\"\nport = \"7171-7172\"\nsteer = \"muses\"\n\
                model = \"small.trees\"\nsafe = \"none\"\n";
    setup.configure("", rule);
    let topology = link(100, LossConfig::None);
    let agent = setup.start_at(topology.server());
    assert_eq!(agent.status().expect("it answers").troubles, Vec::<String>::new());
    let name = setup.options().name_of(Algorithm::Muses);
    download(&topology, &name, PORT);
    let flow = wait_for("the connection", || agent.flow(PORT));
    assert_eq!((flow.rule.as_str(), flow.standing), ("phones", Standing::Selecting), "{flow:?}");
    let why = |port: u16| ask_why(&setup.socket(), &port.to_string()).expect("why").to_string();
    let chosen = |port| Some(why(port)).filter(|why| why.contains("nearest to those of this tree"));
    let told = wait_for("the choice", || chosen(PORT));
    assert!(told.contains("tree"), "{told}");

    download(&topology, &name, PORT + 1);
    wait_for("the next", || agent.flow(PORT + 1));
    let told = wait_for("its beginning", || {
        Some(why(PORT + 1))
            .filter(|why| why.contains("an earlier connection to the same destination"))
    });
    println!("{told}");
}
