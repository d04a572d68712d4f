//! Gives the C library its name and version, by which programs that were linked with it find it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtrimtab.so.0");
}
