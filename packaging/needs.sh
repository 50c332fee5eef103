#!/bin/sh
# Tells in one message which tools are missing, and the command that installs them.
#
# usage: sh packaging/needs.sh TOOL...    with tools of: python rust c java maven
# Set PYTHON to try another interpreter than python3. Ends with 1 if a tool is missing or too old.
cd "$(dirname "$0")/.." || exit 1
missing="" packages=""

# Usage: lacks WHAT PACKAGES
lacks() {
    missing="$missing
  - $1"
    packages="$packages $2"
}

# Tells whether version $1 (1.96.0) is at least $2 (1.95).
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

python() {
    interpreter=${PYTHON:-python3}
    oldest=$(sed -n 's/^requires-python = ">=\(.*\)"/\1/p' pyproject.toml)
    found=$("$interpreter" -c 'import platform; print(platform.python_version())' 2>/dev/null)
    if [ -z "$found" ] || ! at_least "$found" "$oldest"; then
        lacks "Python $oldest or later ($interpreter is ${found:-not there}); PYTHON=… names another" \
            "python3 python3-venv"
    elif ! "$interpreter" -c 'import ensurepip' 2>/dev/null && ! "$interpreter" -c 'import virtualenv' 2>/dev/null; then
        lacks "the module venv of $interpreter" "python3-venv"
    fi
}

rust() {
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$(rustc --version 2>/dev/null | cut -d ' ' -f 2)
    if [ -z "$found" ] || ! cargo --version >/dev/null 2>&1 || ! at_least "$found" "$oldest"; then
        lacks "Rust $oldest or later (rustc is ${found:-not there})" "rustc-web cargo-web"
    fi
}

c() {
    command -v cc >/dev/null && command -v make >/dev/null ||
        lacks "a C compiler and make" "build-essential"
    has_openssl || command -v perl >/dev/null || lacks "Perl, which configures OpenSSL" "perl"
}

has_openssl() {
    pkg-config --atleast-version=3.0 openssl 2>/dev/null
}

java() {
    command -v java >/dev/null || lacks "Java, which runs Kafka for the tests" "default-jre-headless"
}

maven() {
    command -v mvn >/dev/null || lacks "Maven, which fetches Kafka for the tests" "maven"
}

for tool in "$@"; do
    case $tool in
    python | rust | c | java | maven) $tool ;;
    *) echo "needs.sh: unknown tool $tool" >&2 && exit 2 ;;
    esac
done

if [ -n "$missing" ]; then
    echo "This needs what is not here:$missing" >&2
    if command -v apt-get >/dev/null; then
        echo "Install it:  apt-get install$packages" >&2
    else
        echo "Install it with the package manager of this system." >&2
    fi
    exit 1
fi
case " $* " in
*" rust "*)
    has_openssl || echo "OpenSSL will be built from source: some five minutes more." \
        "To link the one of the system:  apt-get install libssl-dev pkg-config"
    ;;
esac
