"""Writes a CycloneDX bill of materials of the Rust workspace: python sbom.py OUTPUT.

Cargo says what there is (`cargo metadata`, `Cargo.lock`), and the library of the CycloneDX project
writes and validates it. The same commit gives the same bytes.
"""

import json
import subprocess
import sys
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

# What names identifiers of this project's bills; chosen once, at random.
NAMESPACE = uuid.UUID("5f0f3a6e-7c1b-4f0c-9f57-1c6f5f3b9a10")


def output_of(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def metadata_of(*options: str) -> dict:
    """What Cargo knows of the packages that `Cargo.lock` has."""
    return json.loads(output_of("cargo", "metadata", "--format-version", "1", "--locked", *options))


def shipped() -> set[str]:
    """The packages that a build takes: those of tests and of optional features are left out."""
    metadata = metadata_of()
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    seen: set[str] = set()
    waiting = list(metadata["workspace_default_members"])
    while waiting:
        package = waiting.pop()
        if package in seen:
            continue
        seen.add(package)
        for dependency in nodes[package]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return seen


def component(package: dict, hashes: dict[tuple[str, str], str], is_shipped: bool) -> Component:
    """A package of the registry, or of this workspace."""
    name, version = package["name"], package["version"]
    checksum = hashes.get((name, version))
    license = package["license"]
    repository = package["repository"]
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        purl=PackageURL("cargo", None, name, version),
        bom_ref=f"{name}@{version}",
        description=package["description"],
        scope=ComponentScope.REQUIRED if is_shipped else ComponentScope.EXCLUDED,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=checksum)] if checksum else [],
        # Cargo also takes the slash that SPDX does not.
        licenses=[LicenseFactory().make_from_string(license.replace("/", " OR "))] if license else [],
        external_references=(
            [ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(repository))] if repository else []
        ),
    )


def bill() -> Bom:
    """The bill of the workspace in this folder."""
    metadata = metadata_of("--all-features")
    lock = Path("Cargo.lock").read_bytes()
    locked = tomllib.loads(lock.decode())["package"]
    hashes = {(one["name"], one["version"]): one["checksum"] for one in locked if "checksum" in one}
    required = shipped()
    components = {one["id"]: component(one, hashes, one["id"] in required) for one in metadata["packages"]}
    members = metadata["workspace_members"]
    version = next(one["version"] for one in metadata["packages"] if one["name"] == "trimtab")
    root = Component(
        type=ComponentType.APPLICATION, name="trimtab", version=version, bom_ref=f"workspace@{version}"
    )
    commit = int(output_of("git", "log", "-1", "--format=%ct"))
    bom = Bom(components=components.values(), serial_number=uuid.uuid5(NAMESPACE, lock.hex()))
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.fromtimestamp(commit, UTC)
    bom.register_dependency(root, [components[member] for member in members])
    for node in metadata["resolve"]["nodes"]:
        bom.register_dependency(components[node["id"]], [components[one] for one in node["dependencies"]])
    return bom


def main() -> None:
    """Writes the bill, after its validation."""
    text = JsonV1Dot6(bill()).output_as_string(indent=1)
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"the bill of materials does not fit the schema of CycloneDX 1.6: {wrong}")
    count = len(json.loads(text)["components"])
    locked = len(tomllib.loads(Path("Cargo.lock").read_text())["package"])
    if count != locked:
        sys.exit(f"the bill of materials has {count} components, and Cargo.lock {locked}")
    Path(sys.argv[1]).write_text(text + "\n")
    print(f"{sys.argv[1]}: {count} components")


main()
