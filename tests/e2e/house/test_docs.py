"""Documents are true to the tree, and comments are plain English: tools/check-docs and tools/check-comments see where one
is not. (They do not read this file, which has the mistakes.)"""
import re

from kymotest import KYMO_PLAIN, SOURCE, check_equal, run


def test_documents_are_true_to_the_tree():
    run(SOURCE / 'tools/check-docs', '--kymo', KYMO_PLAIN).ok()


GOOD = '''# Title

A [page](docs/page.md#two-words), and `kymo record -p libc:malloc -- ls -l`
with `kymo syscalls -fy -p 1 --json`.

```
$ kymo report --events my.data | grep malloc
sudo kymo record --all -p libc:read --for 10    # a comment with --no-such-option
```
'''
PAGE = '.TH KYMO 1\n.SH EXAMPLES\nText.\n.EX\nkymo record \\-p libc:malloc \\-\\- ls\n.EE\n.SH SEE ALSO\n.BR kymo (1)\n'


def test_a_document_that_is_not_true_is_seen(tmp):
    def problems(readme='', page='', source='', manual=''):
        for name, text in (('README.md', GOOD + readme), ('docs/page.md', '# Page\n\n## Two words\n' + page),
                           ('src/one.c', source), ('man/kymo.1', PAGE + manual)):
            (tmp / name).parent.mkdir(exist_ok=True)
            (tmp / name).write_text(text)
        result = run(SOURCE / 'tools/check-docs', '--kymo', KYMO_PLAIN, tmp)
        return [re.sub(r':\d+: ', ': ', line) for line in result.out.splitlines()[:-1]]

    check_equal(problems(), [], 'a good tree')
    check_equal(problems(page=f'\n| {"`name.h` " * 20}|\n'), [], 'a cell of names alone')
    for where, text, problem in (('readme', '\n[gone](docs/gone.md)\n', 'README.md: a dead link: docs/gone.md'),
                                 ('page', '\n[gone](../README.md#gone)\n',
                                  'docs/page.md: a dead anchor: ../README.md#gone'),
                                 ('page', '\nBy `kymo_gone()`.\n',
                                  'docs/page.md: no code has a function kymo_gone()'),
                                 ('source', '/* docs/gone.md */\n', 'src/one.c: no such page: docs/gone.md'),
                                 ('readme', '\n`kymo recrd ls`\n',
                                  'README.md: kymo has no command recrd: kymo recrd ls'),
                                 ('page', '\n```\n$ sudo kymo report --evnts\n```\n',
                                  'docs/page.md: kymo report has no option --evnts: kymo report --evnts'),
                                 ('page', '\n`kymo syscalls -fW ls`\n',
                                  'docs/page.md: kymo syscalls has no option -W: kymo syscalls -fW ls'),
                                 ('manual', '.EX\nkymo record \\-\\-nothing ls\n.EE\n',
                                  'man/kymo.1: kymo record has no option --nothing: kymo record --nothing ls'),
                                 ('manual', '.BR kymo\\-gone (1)\n', 'man/kymo.1: no such manual page: kymo-gone(1)'),
                                 ('page', '\n' + 'word ' * 20 + 'no more\n',
                                  'docs/page.md: 107 columns; tools/check-docs -i breaks it'),
                                 ('page', '\nWhoever reads.\n',
                                  'docs/page.md: Whoever is not a subject: name the thread, process or user'),
                                 ('page', '\nA hub lets go of who asks.\n',
                                  'docs/page.md: who is not a subject: name the thread, process or user'),
                                 ('page', '\n' + ('word ' * 13 + '\n') * 2, 'docs/page.md: a sentence of 26 words: ' +
                                  ('word ' * 26)[:90]), ('page', f'\n| {"x" * 101} |\n',
                                                         f'docs/page.md: a cell of 101 characters: {"x" * 70}')):
        check_equal(problems(**{where: text}), [problem], text)
    (tmp / 'docs/alone.md').write_text('# Alone\n')
    check_equal(problems(), ['docs/alone.md: no document links to this page'], 'a page that nothing links to')


COMMENT = '''/*
 * Files of one page. A user who asks for `nobody` reads them; who else does?
 *
 *	first	what is read at once, by all threads of the process that are there and that have been told so
 *	second	what is read later, by all others that come in the meantime, and that may not have been told so
 */
static const char *text = "Nobody reads /* this */ text.";
'''
SCRIPT = '''#!/usr/bin/env python3
"""Runs, and says so.

    - one row of a list that has no full stop at its end, as is usual for short rows in lists
    - another row of a list that has no full stop at its end, as is usual for short rows in lists
"""
TEXT = "# nobody"  # NOBODY is a name
'''


def test_a_comment_that_is_not_plain_is_seen(tmp):
    def problems(c='', script='', end=''):
        program = SCRIPT.replace('"""\nTEXT', end + '"""\nTEXT') + script
        for name, text in (('src/one.c', COMMENT + c), ('tools/run', program)):
            (tmp / name).parent.mkdir(exist_ok=True)
            (tmp / name).write_text(text)
        return run(SOURCE / 'tools/check-comments', tmp).out.splitlines()[:-1]

    nameless = 'is not a subject: name the thread, process or user'
    long = 'word ' * 26
    check_equal(problems(), [], 'a good tree')
    for where, text, problem in (('c', '/* Nobody reads. */\n', f'src/one.c:8: Nobody {nameless}'),
                                 ('c', '/* As one_init(), _deinit() and is_prefix_bad(). */\nvoid one_init(void);\n',
                                  'src/one.c:8: no code has a function _deinit()'),
                                 ('c', 'int i; // of who asks\n', f'src/one.c:8: who {nameless}'),
                                 ('c', f'/*\n * Short.\n * {long[:65]}\n * {long[65:]}\n */\n',
                                  f'src/one.c:9: a sentence of 26 words: {long[:90]}'),
                                 ('script', f'# {long[:65]}\n# {long[65:]}\n',
                                  f'tools/run:8: a sentence of 26 words: {long[:90]}'),
                                 ('script', 'x = 1  # for somebody\n', f'tools/run:8: somebody {nameless}'),
                                 ('end', 'Whoever runs it.\n', f'tools/run:6: Whoever {nameless}')):
        check_equal(problems(**{where: text}), [problem], text)
