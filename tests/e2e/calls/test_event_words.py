"""func and probe in expressions and filters: the names of the function that is hit and of its event, of each of a
glob."""
from kymotest import check, check_equal, check_matches, events, kymo, program, record, report_json, run, timeout

PROGRAM = r'''
#include <sys/prctl.h>
#define FUNCTION(name, add) __attribute__((noipa)) long name(long a, const char *func) { return a + add + (func != 0); }
FUNCTION(ssl_read, 1)
FUNCTION(ssl_readahead, 2)
FUNCTION(ssl_write, 3)
FUNCTION(ssl_free, 4)
FUNCTION(a_function_whose_name_is_longer_than_the_room_that_a_form_has_for_texts, 5)
int main(int argc, char **argv)
{
	long sum = 0;

	if (argc > 1)
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (int i = 0; i < 6; i++) {
		sum += ssl_read(i, "web");
		sum += i % 2 ? ssl_readahead(i, 0) : ssl_write(i, "dns");
		sum += i % 3 ? 0 : ssl_free(i, 0);
	}
	sum += a_function_whose_name_is_longer_than_the_room_that_a_form_has_for_texts(sum, 0);
	return sum == 42;
}
'''

CALLS = {'ssl_read': 6, 'ssl_readahead': 3, 'ssl_write': 3, 'ssl_free': 2}
LONG = 'a_function_whose_name_is_longer_than_the_room_that_a_form_has_for_texts'


def build(tmp, *flags):
    (tmp / 'app.c').write_text(PROGRAM)
    run(program('gcc'), *flags, '-O1', '-w', '-o', 'app', 'app.c', seconds=60).ok()


def counts(key):
    found = {}
    for event in events():
        value = key(event)
        found[value] = found.get(value, 0) + 1
    return found


def test_each_function_of_a_glob_has_its_own_name(tmp):
    build(tmp)
    for more in ((), ('--no-rseq', )):
        record('--backend', 'inproc', *more, '-p', 'p:call ./app:ssl_* func probe', '--', './app').ok()
        check_equal(
            counts(lambda event: (event.name, event.fields['func'], event.fields['probe'])),
            {(f'call:{name}', f'"{name}"', f'"call:{name}"'): n
             for name, n in CALLS.items()}, f'names with {more}')
    record('--backend', 'inproc', '-r', './app:ssl_* func probe', '-p', './app:main+0 what=func', '--',
           './app').ok()
    found = counts(lambda event: (event.fields.get('func') or event.fields['what'], event.fields.get('probe')))
    check_equal(found, {
        **{(f'"{name}"', f'"app:{name}%return"'): n
           for name, n in CALLS.items()},
        ('"main"', None): 1
    }, 'names at returns')


def test_a_filter_takes_functions_out_of_a_glob(tmp):
    build(tmp)
    for words, names in (('/func != "ssl_free"/', {'ssl_read', 'ssl_readahead', 'ssl_write'}),
                         ('/func == "ssl_read"/', {'ssl_read'}),
                         ('/"ssl_read" != func && func != "ssl_"/', {'ssl_readahead', 'ssl_write', 'ssl_free'}),
                         ('/func == "ssl_write" || probe == "app:ssl_free"/', {'ssl_write', 'ssl_free'}),
                         ('/func == "ssl_readahead" ? arg0 < 3 : func == "ssl_free" && arg0 > 2/',
                          {'ssl_readahead', 'ssl_free'}),
                         ('/str(arg1) == "dns" && func != "ssl_free"/', {'ssl_write'})):
        record('--backend', 'inproc', '-p', f'./app:ssl_* {words}', '--', './app').ok()
        check_equal({event.name for event in events()}, {f'app:{name}' for name in names}, f'events with {words}')
    record('--backend', 'inproc', '--count', './app:ssl_* /func != "ssl_free"/ by func', '--count',
           './app:ssl_* by (func), (probe)', '--', './app').ok()
    tables = report_json()['aggregations']
    found = [{tuple(key['value'] if isinstance(key, dict) else key for key in row['keys']): row['count']
              for row in table['rows']} for table in tables]
    check_equal(found[0], {(name, ): n for name, n in CALLS.items() if name != 'ssl_free'}, 'rows by func')
    check_equal(found[1], {(name, f'app:{name}'): n for name, n in CALLS.items()}, 'rows by both')


def test_nothing_is_read_in_the_program_for_it(tmp):
    """Where memory is a fault because a process limits its calls, names are there."""
    build(tmp)
    record('--backend', 'inproc', '-p', 'p:e ./app:ssl_* /func == "ssl_free" || func == "ssl_write"/ func', '--',
           './app', 'limited').ok()
    check_equal(counts(lambda event: event.fields['func']), {'"ssl_free"': 2, '"ssl_write"': 3}, 'names')


def test_names_are_those_of_the_source(tmp):
    (tmp / 'app.cc').write_text(r'''
namespace shop { struct Cart { int n = 0; __attribute__((noinline)) void add(int); __attribute__((noinline)) void add(long); }; }
void shop::Cart::add(int i) { asm volatile("" : "+m"(n)); n += i; }
void shop::Cart::add(long i) { asm volatile("" : "+m"(n)); n -= (int)i; }
int main() { shop::Cart cart; for (int i = 0; i < 4; i++) { cart.add(i); if (i % 2) cart.add((long)i); } return cart.n == 42; }
''')
    run(program('g++'), '-O1', '-g', '-w', '-o', 'app', 'app.cc', seconds=60).ok()
    record('--backend', 'inproc', '-p', 'p:e ./app:shop::Cart::add /func == "shop::Cart::add(long)"/ func', '--',
           './app').ok()
    check_equal(counts(lambda event: event.fields['func']), {'"shop::Cart::add(long)"': 2}, 'names')


def test_a_long_name_is_cut_where_it_is_recorded(tmp):
    build(tmp)
    record('--backend', 'inproc', '-p', 'p:e ./app:a_func* func', '-p', f'p:f ./app:{LONG}+0 /func != "a_function"/', '--', './app').ok()
    found = [event.fields.get('func') for event in events()]
    check_equal(found, [f'"{LONG[:60]}…"', None], 'names')


@timeout(60)
def test_a_variable_of_that_name_comes_before_it(tmp):
    build(tmp, '-g')
    record('--backend', 'inproc', '-p', './app:ssl_read /func != 0/ a str(func) probe', '--', './app').ok()
    check_equal({(event.fields['func'], event.fields['probe'])
                 for event in events()}, {('"web"', '"app:ssl_read"')}, 'values')


def test_bad_words_are_told_with_their_column(tmp):
    for spec, sentence in (
        ('libc:malloc /probe > 5/', 'column 14: a text is recorded, or compared with another: str(arg0) == "text"'),
        ('libc:malloc func+1', 'column 13: a text is recorded, or compared with another: str(arg0) == "text"'),
        ('libc:malloc func:u8', "column 18: 'func' is text; leave the type out")):
        record('-p', spec, '--', 'true').wrong_words(sentence)
    shown = kymo('explain', '-e', 'func == "x"').ok().out
    check_matches(shown, r'0  func 16 from 0\n')
    check('It may have no value' not in shown, 'a name is always there', shown)
