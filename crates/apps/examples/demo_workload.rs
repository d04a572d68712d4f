//! Prints the workload that ships with the project:
//! `cargo run -p trimtab-apps --example demo_workload > workloads/demo.wk`.

fn main() {
    print!("{}", trimtab_apps::demo_text());
}
