#!/usr/bin/env bash
# Builds a Python that the distribution does not have, for `make test-pythons`:
#
#   packaging/build_python.sh VERSION PREFIX    such as: packaging/build_python.sh 3.14t /opt/pythons/3.14t
#
# VERSION is 3.14, or 3.14t for the build without the GIL. The sources are those of Debian's package `python3.14`: the
# newest of sid, or a pinned one where the mirror does not have that. apt fetches them with lists and a cache of its own:
# the sources of the system stay as they are. It is an ordinary build with -O2, not an optimised one (PGO, LTO): it is
# for tests, and takes some minutes.
set -euo pipefail

version=${1:?VERSION, such as 3.14 or 3.14t} prefix=${2:?PREFIX, such as /opt/pythons/3.14t}
plain=${version%t}
options=()
[[ $version == *t ]] && options=(--disable-gil)

missing=()
for package in build-essential pkg-config xz-utils libssl-dev libffi-dev zlib1g-dev libsqlite3-dev libbz2-dev liblzma-dev; do
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "missing packages; install them with: apt-get install ${missing[*]}" >&2
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/$')
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
mkdir -p "$work"/{lists/partial,cache/archives/partial}
echo "deb-src [signed-by=$keyring] $mirror sid main" > "$work/sources.list"
apt=(apt-get --quiet=2 -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)

newest() {
  "${apt[@]}" update && (cd "$work" && "${apt[@]}" source --download-only "python$plain")
}
pinned() {
  local file=python3.14_3.14.7.orig.tar.xz
  local sha256=3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81
  /usr/lib/apt/apt-helper download-file "${mirror}pool/main/p/python3.14/$file" "$work/$file" "SHA256:$sha256"
}
echo "fetching the sources of python$plain"
newest > "$work/fetch" 2>&1 || pinned >> "$work/fetch" 2>&1 || { cat "$work/fetch"; exit 1; }
mkdir "$work/source"
tar -xf "$work"/python"$plain"_*.orig.tar.* --strip-components=1 -C "$work/source"

echo "building Python $version; this takes some minutes"
cd "$work/source"
./configure --quiet --prefix="$prefix" --disable-test-modules OPT='-O2' "${options[@]}" > "$work/log" 2>&1 ||
  { tail -20 "$work/log"; exit 1; }
nice make -j"$(nproc)" >> "$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
make install >> "$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
"$prefix/bin/python$version" --version --version
