#!/bin/sh
# Installs a wheel of dist/ that fits this Python in .venvs/wheel, with an extra: demo or dev. Ends with 1 if none fits.
#
# usage: sh packaging/install_wheel.sh EXTRA
cd "$(dirname "$0")/.." || exit 1
environment=.venvs/wheel
sh packaging/needs.sh python && "${PYTHON:-python3}" -m venv --clear "$environment" || exit 1
for wheel in dist/awoke-*.whl; do
    "$environment/bin/pip" install --disable-pip-version-check "$wheel[$1]" && exit 0
done
echo "no wheel in dist/ fits this Python" >&2
exit 1
