#!/usr/bin/env bash
# Test one abi3 wheel on every Python it claims to support that is found on this machine. What compares the core with
# other implementations is left out: the core is the same for every Python.
#
#   .ci/test_pythons.sh FILE_THAT_HOLDS_THE_NAME_OF_THE_WHEEL
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

wheel=$(<"$1")
work=build/pythons
failed=0
left_out=(--ignore=tests/test_engine.py --ignore=tests/test_conformance.py --ignore=tests/test_peers.py)
mkdir -p "$work"

# The interpreter of a version, on PATH or among pyenv's. It is asked, because pyenv's shims exist for versions that
# are installed but not active.
find_python() {
    local version=$1 candidate
    for candidate in "python$version" "$(pyenv root 2>/dev/null)"/versions/"$version"*/bin/python; do
        if [ "$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$version" ]; then
            echo "$candidate"
            return
        fi
    done
}

for version in 3.10 3.11 3.12 3.13; do
    python=$(find_python "$version")
    if [ -z "$python" ]; then
        echo "Python $version: not on this machine, not tested"
        continue
    fi
    echo "Python $version:"
    venv=$work/$version
    rm -rf "$venv"
    if ! { "$python" -m venv "$venv" &&
        "$venv/bin/python" -m pip --quiet --disable-pip-version-check install --upgrade 'pip>=25.1' &&
        "$venv/bin/python" -m pip --quiet --disable-pip-version-check install "$wheel" --group test-light &&
        "$venv/bin/python" -m pytest -q -n auto -p no:cacheprovider -m "not slow" "${left_out[@]}"; }; then
        echo "Python $version: FAILED"
        failed=1
    fi
done
exit "$failed"
