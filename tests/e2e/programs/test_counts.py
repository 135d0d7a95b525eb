"""Real programs run as they do without kymo, and the counts of their functions are those of the kernel's uprobes,
exactly."""
import random
import re

from comparing import busiest_places, check_glob, check_names, compare, installed, long_starts
from kernelcount import library
from kymotest import KYMO, check, check_equal, check_matches, check_same, run

LIBC = ['libc:malloc', 'libc:free', 'libc:read', 'libc:write']

# ---- bash ----------------------------------------------------------------------------------------

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

# Said of a command that is there for long enough to be looked at after an exec.
EXECUTED = (r'^kymo: warning: process \d+ has executed another program, which is not recorded; what it did before is\n')


def test_bash_runs_a_script_with_functions_loops_and_expansions():
    bash = installed('bash')
    named = [
        f'bash:{name}' for name in ('execute_command', 'execute_command_internal', 'parse_command', 'find_variable',
                                    'expand_word', 'bind_variable', 'xmalloc', 'xfree', 'yyparse')
    ]
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
    comparison = compare([installed('bash'), '-c', script],
                         ['bash:make_child', 'bash:wait_for', 'libc:malloc', 'libc:fork'], status=3)
    check_equal(comparison.count('bash:make_child'), 6, 'children')


# ---- python --------------------------------------------------------------------------------------

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
    named = [
        f'python3:{name}' for name in ('PyObject_Call', 'PyDict_SetItem', 'PyDict_GetItem', 'PyEval_EvalCode',
                                       'PyErr_SetObject', 'PyType_IsSubtype', 'PyList_New', 'PyUnicode_New')
    ]
    comparison = compare([python, '-S', '-E', '-c', PYTHON_SCRIPT], [*named, *LIBC], status=5)
    check_names(comparison.report, [python, library('libc.so.6')])
    check(comparison.count('libc:malloc') > 1000, 'mallocs', comparison.counts)


def test_python_with_all_functions_of_four_globs():
    python = installed('python3')
    specs = ['python3:PyDict_*', 'python3:PyList_*', 'python3:PyImport_*', 'libz:inflate*']
    comparison = compare([python, '-S', '-E', '-c', PYTHON_SCRIPT], specs, status=5)
    check_names(comparison.report, [python])
    check(sum(check_glob(comparison, spec, python) for spec in specs[:3]) > 40, 'functions of the globs')


# ---- sqlite --------------------------------------------------------------------------------------

SQL = '''
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, x REAL);
CREATE INDEX by_name ON t(name);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
	INSERT INTO t SELECT i, 'name ' || (i * 7919 % 500), i / 3.0 FROM n;
SELECT count(*), sum(x), max(name) FROM t WHERE name LIKE '%9';
UPDATE t SET x = x * 2 WHERE id % 3 = 0;
DELETE FROM t WHERE name < 'name 2';
SELECT * FROM t ORDER BY name DESC, x LIMIT 20;
SELECT missing FROM t;
'''


def test_sqlite_works_on_a_database(tmp):
    sqlite3 = installed('sqlite3')
    lib = library('libsqlite3.so.0', sqlite3)
    # The shell is stripped and its library exports the API alone: so some of what that names, and all that matches a
    # glob.
    specs = [
        'libsqlite3:sqlite3_step', 'libsqlite3:sqlite3_prepare_v2', 'libsqlite3:sqlite3_column_*',
        'libsqlite3:sqlite3_value_*', 'libsqlite3:sqlite3_bind_*', 'libsqlite3:sqlite3_result_*'
    ]
    (tmp / 'sql').write_text(SQL + '.exit 1\n')
    comparison = compare([sqlite3, '-batch', '-bail', ':memory:', f'.read {tmp}/sql'], [*specs, *LIBC], status=1)
    check_names(comparison.report, [lib, library('libc.so.6')])
    check(sum(check_glob(comparison, spec, lib) for spec in specs) > 40, 'functions of the globs')
    check_matches(comparison.result.err, 'no such column: missing')


# ---- git -----------------------------------------------------------------------------------------

GIT_ENV = {
    f'GIT_{who}_{what}': value for who in ('AUTHOR', 'COMMITTER')
    for what, value in (('NAME', 'A'), ('EMAIL', 'a@example.org'), ('DATE', '1600000000 +0000'))
}


def make_repository(tmp, git):
    directory = tmp / 'repository'
    run(git, 'init', '-q', '-b', 'main', directory).ok()
    for i in range(12):
        for k in range(4):
            (directory / f'file{k}').write_text(''.join(f'line {n} of {k}, {n * i % (k + 3)}\n' for n in range(60)))
        run(git, '-C', directory, 'add', '.', env=GIT_ENV).ok()
        run(git, '-C', directory, 'commit', '-q', '-m', f'step {i}', env=GIT_ENV).ok()
    return directory


def test_git_shows_a_history_with_patches(tmp):
    git = installed('git')
    libz, libc = library('libz.so.1', git), library('libc.so.6')
    comparison = compare(
        [git, '--no-pager', '-C', make_repository(tmp, git), 'log', '-p', '--stat', '--graph'],
        ['libz:inflate*', 'libz:crc32*', 'libz:adler32*', *LIBC, 'libc:str*'], env=GIT_ENV)
    check_names(comparison.report, [libz, libc])
    check(comparison.count('libz:inflate') > 40, 'objects are inflated', comparison.counts)


def test_git_at_a_hundred_places_that_only_unwinding_tables_tell(tmp):
    """git is stripped."""
    git = installed('git')
    directory = make_repository(tmp, git)
    starts = long_starts(git)
    places = sorted(random.Random(1).sample(starts, 100))
    comparison = compare([git, '--no-pager', '-C', directory, 'log', '--oneline', '-p'],
                         [f'{git}:0x{place:x}' for place in places], env=GIT_ENV)
    check_same([probe['offset'] for probe in comparison.report['probes']], places, 'places')
    check(sum(count > 0 for count in comparison.counts.values()) > 5, 'some of them run', comparison.counts)


# ---- xz ------------------------------------------------------------------------------------------

SPECS_XZ = [
    'liblzma:lzma_block_*', 'liblzma:lzma_index_*', 'liblzma:lzma_stream_*', 'liblzma:lzma_filter*',
    'liblzma:lzma_crc32', 'liblzma:lzma_properties_*', 'libc:pthread_create', 'libc:pthread_join'
]


def text_of(n_bytes):
    choose = random.Random(2)
    words = [bytes(choose.choices(range(97, 123), k=choose.randrange(2, 12))) for _ in range(500)]
    return b' '.join(choose.choice(words) for _ in range(n_bytes // 6))[:n_bytes]


def test_xz_compresses_with_two_threads_and_back(tmp):
    xz = installed('xz')
    lib = library('liblzma.so.5', xz)
    (tmp / 'text').write_bytes(text_of(400_000))
    comparison = compare([xz, '-T2', '--block-size=65536', '-2', '-k', '-f', tmp / 'text'], SPECS_XZ,
                         outputs=[tmp / 'text.xz'])
    check_names(comparison.report, [lib])
    check_equal(comparison.count('libc:pthread_create'), 2, 'threads')
    check(comparison.report['threads'], 'threads of the report')
    (tmp / 'text').rename(tmp / 'original')
    compare([xz, '-d', '-T1', '-k', '-f', tmp / 'text.xz'], SPECS_XZ[:-2], outputs=[tmp / 'text'])
    check_equal((tmp / 'text').read_bytes(), (tmp / 'original').read_bytes(), 'text')


def test_xz_with_two_threads_that_pass_hundreds_of_thousands_of_probes(tmp):
    """What runs for each symbol; what runs for each piece that the threads hand over varies with their timing."""
    xz = installed('xz')
    lib = library('liblzma.so.5', xz)
    (tmp / 'text').write_bytes(text_of(250_000))
    command = [xz, '-T2', '--block-size=65536', '-4', '-k', '-f', tmp / 'text']
    places = busiest_places(lib, command, 1000)
    comparison = compare(command, [f'{lib}:0x{place:x} $arg1 $arg2' for place in places], outputs=[tmp / 'text.xz'])
    check(comparison.total > 100_000, 'there are many', comparison.total)
    check(len(comparison.report['threads']) == 2, 'in two threads', comparison.report['threads'])


# ---- perl ----------------------------------------------------------------------------------------

PERL_SCRIPT = r'''
use strict; use warnings;
sub fact { my $n = shift; return $n < 2 ? 1 : $n * fact($n - 1) }
my %count; $count{length $_}++ for map { "word" x ($_ % 7) } 1 .. 100;
print join(",", map { "$_=$count{$_}" } sort { $a <=> $b } keys %count), "\n";
(my $text = join " ", map { fact($_) } 1 .. 12) =~ s/(\d)0+/$1~/g;
print "$text\n", sprintf("%.3f %s\n", sqrt(2), unpack("H*", pack("N", 258)));
eval { die "caught\n" }; warn $@;
exit 9;
'''


def test_perl_with_a_hundred_functions_of_its_interpreter():
    perl = installed('perl')
    specs = ['perl:Perl_pp_*', 'perl:Perl_av_*', 'perl:Perl_hv_*', 'perl:Perl_sv_*', 'perl:Perl_runops_standard', *LIBC]
    comparison = compare([perl, '-e', PERL_SCRIPT], specs, status=9)
    check_names(comparison.report, [perl])
    check(sum(check_glob(comparison, spec, perl) for spec in specs[:4]) > 100, 'functions of the globs')
    check(sum(count > 0 for count in comparison.counts.values()) > 60, 'functions that ran', comparison.counts)


# ---- gcc -----------------------------------------------------------------------------------------

C_SOURCE = '''
typedef struct node { struct node *next; int n; } node;
static int square(int x) { return x * x; }
int total(const node *at) { int n = 0; for (; at; at = at->next) n += square(at->n); return n; }
double mean(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return n ? s / n : 0; }
'''


def test_gcc_drives_a_compilation(tmp):
    gcc = installed('gcc')
    (tmp / 'c.c').write_text(C_SOURCE)
    specs = [*LIBC, 'libc:vfork', 'libc:waitpid', 'libc:access', 'libc:fopen', 'libc:qsort*']
    comparison = compare([gcc, '-O2', '-pipe', '-c', '-o', tmp / 'c.o', tmp / 'c.c'], specs, outputs=[tmp / 'c.o'])
    check_names(comparison.report, [library('libc.so.6')])


def test_the_compiler_itself_compiles(tmp):
    cc1 = run(installed('gcc'), '-print-prog-name=cc1').ok().out.strip()
    (tmp / 'c.c').write_text(C_SOURCE)
    specs = ['cc1:*gimplify*', 'cc1:*ggc_*', 'cc1:*c_parser_*', *LIBC]
    comparison = compare([cc1, '-quiet', '-O2', '-o', tmp / 'c.s', tmp / 'c.c'], specs, outputs=[tmp / 'c.s'],
                         handles_faults=True)
    check_names(comparison.report, [cc1])
    check(sum(count > 0 for count in comparison.counts.values()) > 20, 'functions that ran', comparison.counts)


# ---- everything ----------------------------------------------------------------------------------


def check_everything(command, specs, n_probes, **options):
    """Probes on all functions at once, those that the dynamic linker calls among them."""
    comparison = compare(command, specs, **options)
    check(len(comparison.report['probes']) > n_probes, 'probes', len(comparison.report['probes']))
    check(
        sum(count > 0 for count in comparison.counts.values()) > n_probes / 20, 'functions that ran', comparison.counts)


def test_every_function_of_bash_and_its_libraries():
    check_everything([installed('bash'), '-c', BASH_SCRIPT], ['bash:*', 'libc:*', 'libtinfo:*'], 2000, status=7,
                     handles_faults=True)


def test_every_function_of_the_dynamic_linker_and_of_sqlites_libraries():
    check_everything([installed('sqlite3'), '-batch', ':memory:', 'select sum(value) from generate_series(1, 9);'],
                     ['ld-linux-x86-64:*', 'libsqlite3:*', 'libreadline:*', 'libz:*', 'libm:*'], 500)


def test_every_function_of_libc_while_text_is_sorted(tmp):
    (tmp / 'text').write_bytes(text_of(60_000).replace(b' ', b'\n'))
    check_everything([installed('sort'), '-o', tmp / 'sorted', tmp / 'text'], ['libc:*'], 1000,
                     outputs=[tmp / 'sorted'])


# ---- surroundings --------------------------------------------------------------------------------

LOOK_AROUND = r'''
env | sort | grep -v '^_='
pwd; umask; nice; ulimit -a
while read -r line; do [[ $line =~ ^(Sig[PBIC]|Shd|Umask|Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|Cpus_allowed_list|Tracer) ]] && echo "$line"
done < /proc/$$/status  # read by the shell: it blocks signals for a moment whenever it starts a command
for fd in /proc/$$/fd/*; do echo "${fd##*/}"; done
cat /proc/$$/oom_score_adj /proc/$$/coredump_filter /proc/$$/personality
cat
exit 4
'''


def test_the_command_finds_the_same_surroundings(tmp):
    """Signals that are ignored or blocked, descriptors, limits, environment, stdin."""
    (tmp / 'look').write_text(LOOK_AROUND)
    bash = installed('bash')
    for ignored in ('INT', 'PIPE XFSZ HUP', 'TERM QUIT USR1'):
        setting = f"trap '' {ignored}; ulimit -n 200; umask 027; exec"
        bare = run(bash, '-c', f'{setting} "$@"', 'sh', bash, tmp / 'look', input='typed\n').ended(4)
        recorded = run(bash, '-c', f'{setting} "$@"', 'sh', KYMO, 'record', '-q', '--no-follow', '-p',
                       'bash:execute_command', '--', bash, tmp / 'look', input='typed\n').ended(4)
        check_same(recorded.out, bare.out, f'what the command sees with {ignored} ignored')
        check_same(re.sub(EXECUTED, '', recorded.err, count=1), bare.err, 'stderr')
        check_matches(recorded.out, '^typed$')
