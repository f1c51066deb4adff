"""Build backend of `pip install .` (PEP 517 and 660): makes a wheel of python/laminate and an installed
tree of Laminate.

    pip install .       builds the program first, as `make` does
    pip install -e .    uses build/bin/laminate of the checkout
    pip install . --config-settings install-tree=/opt/laminate
                        takes a tree that `make install PREFIX=/opt/laminate` made

Standard library only.
"""

import base64
import hashlib
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def _project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _version():
    return re.search(
        r"project\(Laminate VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()
    ).group(1)


def _metadata():
    project = _project()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {_version()}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        "License: Apache-2.0",
    ]
    lines += [f"Requires-Dist: {name}" for name in project["dependencies"]]
    for extra, names in project["optional-dependencies"].items():
        lines += [
            f"Provides-Extra: {extra}",
            *[f'Requires-Dist: {name}; extra == "{extra}"' for name in names],
        ]
    return "\n".join(
        [*lines, "Description-Content-Type: text/markdown", "", (ROOT / "README.md").read_text()]
    )


def _info():
    return f"{_project()['name']}-{_version()}.dist-info"


def _platform_tag():
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def _about(tag):
    """The files of a .dist-info without its RECORD, by name."""
    scripts = "".join(f"{name} = {target}\n" for name, target in _project()["scripts"].items())
    return {
        "METADATA": _metadata(),
        "entry_points.txt": "[console_scripts]\n" + scripts,
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: laminate\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }


class _Wheel:
    """A wheel file under construction."""

    def __init__(self, directory, tag):
        self._tag = tag
        self.name = f"{_project()['name']}-{_version()}-{tag}.whl"
        self._zip = zipfile.ZipFile(
            pathlib.Path(directory) / self.name, "w", zipfile.ZIP_DEFLATED, compresslevel=1
        )
        self._record = []

    def _note(self, name, data):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(data)}")

    def add_text(self, name, text):
        self._note(name, text.encode())
        self._zip.writestr(name, text)

    def add_file(self, name, file):
        data = file.read_bytes()
        self._note(name, data)
        info = zipfile.ZipInfo.from_file(file, name)  # keeps the mode: the program stays a program
        info.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(info, data, compresslevel=1)

    def close(self):
        for name, text in _about(self._tag).items():
            self.add_text(f"{_info()}/{name}", text)
        record = f"{_info()}/RECORD"
        self._zip.writestr(record, "\n".join([*self._record, f"{record},,"]) + "\n")
        self._zip.close()


def _install(prefix):
    """Builds what is missing and installs it under `prefix`."""
    subprocess.run(["make", "-C", str(ROOT), "install", f"PREFIX={prefix}"], check=True)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Lets pip read the dependencies without building the program."""
    directory = pathlib.Path(metadata_directory) / _info()
    directory.mkdir(parents=True)
    for name, text in _about(_platform_tag()).items():
        (directory / name).write_text(text)
    return _info()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    tree = (config_settings or {}).get("install-tree")
    with tempfile.TemporaryDirectory() as directory:
        if tree is None:
            tree = pathlib.Path(directory) / "tree"
            _install(tree)
        tree = pathlib.Path(tree)
        if not (tree / "bin" / "laminate").is_file():
            raise SystemExit(
                f"install-tree {tree}: has no bin/laminate, expected a tree of `make install`"
            )
        wheel = _Wheel(wheel_directory, _platform_tag())
        for file in sorted((ROOT / "python" / "laminate").glob("*.py")):
            wheel.add_file(f"laminate/{file.name}", file)
        for file in sorted(tree.rglob("*")):
            if file.is_file():
                wheel.add_file(f"laminate/installed/{file.relative_to(tree)}", file)
        wheel.close()
    return wheel.name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    wheel = _Wheel(wheel_directory, "py3-none-any")
    wheel.add_text("laminate.pth", str(ROOT / "python") + "\n")
    wheel.close()
    return wheel.name


def build_sdist(sdist_directory, config_settings=None):
    """Packs the files that git tracks."""
    name = f"{_project()['name']}-{_version()}"
    files = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True
    ).stdout.split("\0")
    with tempfile.TemporaryDirectory() as directory:
        top = pathlib.Path(directory) / name
        for file in filter(None, files):
            if (ROOT / file).is_file():
                (top / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, top / file)
        (top / "PKG-INFO").write_text(_metadata())
        shutil.make_archive(str(pathlib.Path(sdist_directory) / name), "gztar", directory, name)
    return f"{name}.tar.gz"
