"""Completion of the command line in bash, zsh and fish: commands, options, functions of the file that is typed, files,
processes."""
import os
from pathlib import Path

from kymotest import KYMO_PLAIN, SOURCE, check, check_equal, program, run, sleeper

SCRIPTS = SOURCE / 'completions'
MALLOC = {'malloc', 'malloc_info', 'malloc_stats', 'malloc_trim', 'malloc_usable_size'}
PATH = {'PATH': f'{Path(KYMO_PLAIN).parent}:{os.environ["PATH"]}'}


def bash(line, **options):
    """What bash would put in place of the last word, as far as bash takes it for one: a colon ends a word there."""
    script = f'''source {SCRIPTS}/kymo.bash
COMP_LINE=$1; COMP_POINT=${{#COMP_LINE}}; COMP_WORDBREAKS=$' \\t\\n"><=;|&(:'; COMPREPLY=()
_kymo 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"'''
    return set(run('bash', '-c', script, 'bash', line, env=PATH, **options).ok().out.split())


def fish(line, **options):
    text = run(program('fish'), '--no-config', '-c', f'source {SCRIPTS}/kymo.fish; complete -C $argv[1]', line,
               env={**PATH, 'HOME': os.environ['TMPDIR']}, **options).ok().out
    found = {each.split('\t')[0] for each in text.splitlines()}
    return {each for each in found if each.startswith(line.split(' ')[-1])}  # fish offers what is like it, too


def check_shell(complete, whole, tmp):
    """`whole`: a place is one word to that shell, from its file on."""
    check_equal(complete('kymo re'), {'record', 'report'}, 'commands')
    check_equal(complete('kymo help sy'), {'syscalls'}, 'commands of help')
    check_equal(complete('kymo help pro'), {'probes'}, 'topics of help')
    check({'--follow', '--for'} <= complete('kymo record --fo'), 'options of record')
    check_equal(complete('kymo report --ev'), {'--events'}, 'options of report')
    check_equal(complete('kymo record -s %f'), {'%file'}, 'sets')
    functions = complete('kymo record -p libc:malloc')
    check({f'libc:{name}' if whole else name for name in MALLOC} <= functions, f'functions of libc: {functions}')
    (tmp / 'trace.of.mine').mkdir()
    check(any(each.rstrip('/') == 'trace.of.mine' for each in complete('kymo report trace.of', cwd=tmp)), 'directories')
    pid = str(sleeper().pid)
    check(pid in complete(f'kymo detach {pid[:-1]}'), 'processes')
    check_equal(complete('kymo record -p libc:there_is_no_such_'), set(), 'no such function')
    check(pid in complete(f'kymo syscalls -p {pid[:-1]}'), '-p of syscalls')
    check('bash' not in complete('kymo syscalls -p bas'), 'no commands are there')
    (tmp / 'file.of.mine').touch()
    words = complete('kymo record -p libc:malloc -- ls file.of', cwd=tmp)
    check_equal({each.rstrip('/') for each in words}, {'file.of.mine'}, 'files of the command')
    check({'sleep'} <= complete('kymo record -p libc:malloc -- slee'), 'the command')
    check_equal({each for each in complete('kymo record -p libc:malloc -- ls --pi') if each == '--pid'}, set(),
                "the command's options are not kymo's")


def test_bash_completes_what_is_typed(tmp):
    check_shell(bash, False, tmp)
    check(MALLOC <= bash('kymo explain libc malloc'), 'functions of the file named before')
    check_equal(bash('kymo record -s read,%fi'), {'read,%file'}, 'a set after a comma')
    check_equal(bash('kymo record --probe=libc:malloc_usab'), {'malloc_usable_size'}, 'a value after =')
    check_equal(bash('kymo syscalls -u roo'), {'root'}, 'users')


def test_fish_completes_what_is_typed(tmp):
    check_shell(fish, True, tmp)
    check(MALLOC <= fish('kymo explain libc malloc'), 'functions of the file named before')
    check('libc:malloc_usable_size' in fish('kymo record -b libc:malloc_usab'), 'branches')


def test_zsh_completes_what_is_typed(tmp):
    """In a shell on a terminal, which shows the rest of the word after the tab, or never does."""
    zsh = program('zsh')
    run(zsh, '-n', SCRIPTS / '_kymo').ok()
    script = f'''zmodload zsh/zpty
zpty shell {zsh} -f -i
zpty -w shell "PS1=; fpath=({SCRIPTS} \\$fpath); autoload -U compinit; compinit -u -D; echo re''ady"
zpty -r -m shell reply '*ready*'
zpty -w -n shell "$1"$'\\t'
zpty -r -m shell reply "*$2*"
zpty -d shell'''
    for line, whole in (('kymo rec', 'record'), ('kymo report --ev', '--events'), ('kymo help sysc', 'syscalls'),
                        ('kymo record -s %f', '%file'), ('kymo list libc malloc_usab', 'malloc_usable_size'),
                        ('kymo record -p libc:malloc -- kymo rep', 'report'),
                        ('kymo record -p libc:malloc_usab', 'libc:malloc_usable_size')):
        run(zsh, '-f', '-c', script, 'zsh', line, whole, env={**PATH, 'TERM': 'dumb'}, seconds=60).ok()
