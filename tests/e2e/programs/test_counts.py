"""Real programs run as they do without kymo, and the counts of their functions are those of the kernel's uprobes, exactly."""
import gzip
import random
import subprocess

from comparing import check_glob, check_names, compare, frame_starts, installed
from kernelcount import library
from kymotest import check, check_equal, check_matches, report_json, run, target_path, timeout

LIBC = ['libc:malloc', 'libc:free', 'libc:read', 'libc:write']

# ---- bash ----------------------------------------------------------------------------------------------------------------

BASH_SCRIPT = r'''
fib() { if (( $1 < 2 )); then echo "$1"; else local a b; a=$1; b=$((a - 1)); REPLY=$((b * a)); fi; }
declare -A words
for i in {1..40}; do fib "$i"; words[k$i]=$((i * i)); done
for key in "${!words[@]}"; do printf '%s=%s\n' "$key" "${words[$key]}"; done
case $REPLY in 1*) text=one ;; *) text=${REPLY//5/five} ;; esac
while read -r line; do echo "<${line^^}>"; done <<< $'first\nsecond line\nthird'
echo "$text" >&2
trap 'echo bye' EXIT
exit 7
'''


def test_bash_runs_a_script_with_functions_loops_and_expansions():
    bash = installed('bash')
    named = [f'bash:{name}' for name in ('execute_command', 'execute_command_internal', 'parse_command', 'find_variable',
                                         'expand_word', 'bind_variable', 'xmalloc', 'xfree', 'yyparse')]
    comparison = compare([bash, '-c', BASH_SCRIPT], [*named, *LIBC], status=7)
    check_names(comparison.report, [bash, library('libc.so.6')])
    check(comparison.count('bash:execute_command_internal') > 200, 'commands are executed', comparison.counts)


def test_bash_with_all_functions_of_three_globs():
    bash = installed('bash')
    specs = ['bash:execute_*', 'bash:expand_*', 'bash:hash_*']
    comparison = compare([bash, '-c', BASH_SCRIPT], specs, status=7)
    check_names(comparison.report, [bash])
    check(sum(check_glob(comparison, spec, bash) for spec in specs) > 20, 'functions of the globs')


def test_bash_makes_children_and_waits_for_them():
    script = 'for i in 1 2 3; do (echo "in $BASHPID" >/dev/null; exit $i); echo $?; done; x=$(echo y); echo $x | cat; exit 3'
    comparison = compare([installed('bash'), '-c', script], ['bash:make_child', 'bash:wait_for', 'libc:malloc', 'libc:fork'],
                         status=3)
    check_equal(comparison.count('bash:make_child'), 6, 'children')


# ---- python --------------------------------------------------------------------------------------------------------------

PYTHON_SCRIPT = r'''
import json, re, sys
class Node:
    def __init__(self, n): self.n, self.more = n, [Node(n - 1), Node(n - 2)] if n > 1 else []
    def total(self): return self.n + sum(node.total() for node in self.more)
data = {"k%d" % i: [i, str(i), {"x": i / 3}] for i in range(50)}
text = json.dumps(data, sort_keys=True)
assert json.loads(text) == data
print(Node(9).total(), len(text), re.sub(r"\d+", lambda m: "<%s>" % m[0], text)[:100])
try:
    {}["missing"]
except KeyError as error:
    print(error, file=sys.stderr)
sys.exit(5)
'''


def test_python_runs_a_script_with_objects_json_and_an_exception():
    python = installed('python3')
    named = [f'python3:{name}' for name in ('PyObject_Call', 'PyDict_SetItem', 'PyDict_GetItem', '_PyEval_EvalFrameDefault',
                                            'PyErr_SetObject', 'PyType_IsSubtype', 'PyList_New', 'PyUnicode_New')]
    comparison = compare([python, '-S', '-E', '-c', PYTHON_SCRIPT], [*named, *LIBC], status=5)
    check_names(comparison.report, [python, library('libc.so.6')])
    check(comparison.count('libc:malloc') > 1000, 'mallocs', comparison.counts)


def test_python_with_all_functions_of_four_globs():
    python = installed('python3')
    specs = ['python3:PyDict_*', 'python3:PyList_*', 'python3:PyImport_*', 'libz:inflate*']
    comparison = compare([python, '-S', '-E', '-c', PYTHON_SCRIPT], specs, status=5)
    check_names(comparison.report, [python])
    check(sum(check_glob(comparison, spec, python) for spec in specs[:3]) > 60, 'functions of the globs')


# ---- sqlite ----------------------------------------------------------------------------------------------------------------

SQL = '''
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, x REAL);
CREATE INDEX by_name ON t(name);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
	INSERT INTO t SELECT i, 'name ' || (i * 7919 % 500), i / 3.0 FROM n;
SELECT count(*), sum(x), max(name) FROM t WHERE name LIKE '%9';
UPDATE t SET x = x * 2 WHERE id % 3 = 0;
DELETE FROM t WHERE name < 'name 2';
SELECT * FROM t ORDER BY name DESC, x LIMIT 20;
SELECT nothing FROM t;
'''


def test_sqlite_works_on_a_database(tmp):
    sqlite3 = installed('sqlite3')
    lib = library('libsqlite3.so.0', sqlite3)
    # The shell is stripped and its library exports the API alone: so some of what that names, and all that matches a glob.
    specs = ['libsqlite3:sqlite3_step', 'libsqlite3:sqlite3_prepare_v2', 'libsqlite3:sqlite3_column_*',
             'libsqlite3:sqlite3_value_*', 'libsqlite3:sqlite3_bind_*', 'libsqlite3:sqlite3_result_*']
    (tmp / 'sql').write_text(SQL + '.exit 1\n')
    comparison = compare([sqlite3, '-batch', '-bail', ':memory:', f'.read {tmp}/sql'], [*specs, *LIBC], status=1)
    check_names(comparison.report, [lib, library('libc.so.6')])
    check(sum(check_glob(comparison, spec, lib) for spec in specs) > 40, 'functions of the globs')
    check_matches(comparison.result.err, 'no such column: nothing')
