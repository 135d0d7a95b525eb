"""What functions return is taken from the register that has it, and from no other."""
import json

from kymotest import check_equal, check_matches, check_same, kymo, program, record, run, timeout
from shown import lines

RETURNS = r'''
#define NOT_INLINE __attribute__((noinline, noipa))
struct floats { float x, y; };
struct number { double d; };
struct mixed { int a; float b; };
struct nested { struct { float x[1]; } in[1]; union { float y; float z; }; };
union either { double d; long l; };
struct bits { int low : 4; float f; };
struct packed { char c; float f; } __attribute__((packed));
struct three { float x, y, z; };
struct large { long a[3]; };
NOT_INLINE struct floats floats(int i) { return (struct floats){ i * 0.5f, -i }; }
NOT_INLINE struct number number(int i) { return (struct number){ i * 0.25 }; }
NOT_INLINE struct mixed mixed(int i) { return (struct mixed){ i, i * 0.5f }; }
NOT_INLINE struct nested nested(int i) { struct nested n = { { { { i } } }, { i * 2 } }; return n; }
NOT_INLINE union either either(int i) { union either e = { .l = i }; return e; }
NOT_INLINE struct bits bits(int i) { return (struct bits){ i, i * 3 }; }
NOT_INLINE struct packed packed(int i) { return (struct packed){ i, i }; }
NOT_INLINE struct three three(int i) { return (struct three){ i, i, i }; }
NOT_INLINE struct large large(int i) { return (struct large){ { i } }; }
int main(void)
{
	double sum = 0;
	for (int i = 1; i < 4; i++)
		sum += floats(i).x + number(i).d + mixed(i).b + nested(i).y + either(i).l + bits(i).f + packed(i).f + three(i).x + large(i).a[0];
	return sum < 0;
}
'''


@timeout(120)
def test_small_structures_are_read_from_the_register_that_returns_them(tmp):
    (tmp / 'returns.c').write_text(RETURNS)
    probes = [('floats', 'retval.x retval.y', [[i * 0.5, -i] for i in (1, 2, 3)]),
              ('number', 'retval.d', [[i * 0.25] for i in (1, 2, 3)]),
              ('mixed', 'retval.a retval.b', [[i, i * 0.5] for i in (1, 2, 3)]),
              ('nested', 'y=retval.y', [[i * 2] for i in (1, 2, 3)]), ('either', 'retval.l', [[i] for i in (1, 2, 3)]),
              ('bits', 'retval.low retval.f', [[i, i * 3] for i in (1, 2, 3)])]
    for compiler in (('gcc', '-O2'), ('gcc', '-O0', '-gdwarf-4'), ('clang', '-O1')):
        run(program(compiler[0]), *compiler[1:], '-g', '-w', '-o', 'returns', 'returns.c', seconds=60).ok()
        record(*(word for name, values, _ in probes for word in ('-r', f'./returns:{name} {values}')), '--',
               './returns').ok()
        rows = [json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()]
        for name, _, expected in probes:
            check_equal([list(row['args'].values()) for row in rows if row['name'] == f'returns:{name}%return'],
                        expected, f'what {name} returns with {compiler}')
    for name, member, sentence in (
        ('packed', 'c',
         "the function returns a 'struct packed' in memory; %ax has its address, so write a member as in ((struct packed *)%ax)->x"
         ),
        ('large', 'a',
         "the function returns a 'struct large' in memory; %ax has its address, so write a member as in ((struct large *)%ax)->x"
         ), ('three', 'x',
             "the function returns a 'struct three' of more than 8 bytes, which one register does not have")):
        result = record('-r', f'./returns:{name} retval.{member}', '--', './returns')
        check_equal((result.status, result.err.splitlines()[0]), (2, f'kymo: column {12 + len(name)}: {sentence}'),
                    f'sentence about {name}')
    record('-r', './returns:large a=((struct large *)%ax)->a[0]', '--', './returns').ok()
    check_equal(lines('returns:large%return'), ['a=1', 'a=2', 'a=3'], 'by the address')


NO_INTEGERS = r'''
#define NOT_INLINE __attribute__((noinline, noipa))
struct two { double x, y; };
struct pair { int a, b; };
NOT_INLINE double real(int i) { return i + 0.25; }
NOT_INLINE long double extended(int i) { return i; }
NOT_INLINE _Complex double complex(int i) { return i; }
NOT_INLINE __int128 wide(int i) { return i; }
NOT_INLINE struct two two(int i) { return (struct two){ i, i }; }
NOT_INLINE struct pair pair(int i) { return (struct pair){ i, -1 }; }
NOT_INLINE long integer(int i) { return i; }
NOT_INLINE void nothing(int i) { }
int main(void)
{
	double sum = 0;
	for (int i = 1; i < 4; i++) {
		sum += real(i) + extended(i) + (double)complex(i) + wide(i) + two(i).x + pair(i).a + integer(i);
		nothing(i);
	}
	return sum < 0;
}
'''


@timeout(120)
def test_a_return_value_that_is_no_integer_is_not_taken_from_the_register_of_integers(tmp):
    (tmp / 'no.c').write_text(NO_INTEGERS)
    run(program('gcc'), '-O1', '-g', '-w', '-o', 'no', 'no.c', seconds=60).ok()
    for spec, column, sentence in (
        ('real retval /retval % 2/', 26,
         "'%' is for whole numbers, and this has a floating-point number; convert it: (long)x"),
        ('extended (retval)', 16, "the function returns a 'long double', which is not supported; float and double are"),
        ('complex retval', 14,
         "values of type 'complex double' are not supported"), ('wide retval', 11,
                                                                "values of type '__int128' are not supported"),
        ('two retval', 10,
         "the function returns a 'struct two' of more than 8 bytes, which one register does not have"),
        ('nothing retval', 14,
         'the function returns nothing (void); write %ax for what it happens to leave in the register'),
        ('nothing /retval > 0/', 15,
         'the function returns nothing (void); write %ax for what it happens to leave in the register'),
        ('pair retval', 11, "this 'struct pair' is in registers, and not recorded as a whole; write its members")):
        result = record('-r', f'./no:{spec}', '--', './no')
        check_equal((result.status, result.err.splitlines()[0]), (2, f'kymo: column {column}: {sentence}'),
                    f'sentence about {spec}')
    record('-r', './no:real /retval > 1.5/ retval double=($retval * 2) whole=(int)retval', '--', './no').ok()
    check_equal(lines('no:real%return'), ['retval=2.25 double=4.5 whole=2', 'retval=3.25 double=6.5 whole=3'],
                'a double is computed with')
    record('-r', './no:integer /retval > 1/ retval', '-r', './no:nothing x=(%ax & 0)', '-r', './no:pair retval.b',
           '--', './no').ok()
    check_equal(lines('no:integer%return'), ['retval=2', 'retval=3'], 'integers')
    check_equal(lines('no:pair%return'), 3 * ['b=-1'], 'a member')


@timeout(120)
def test_a_register_of_integers_is_not_taken_for_what_it_does_not_have(tmp):
    (tmp / 'no.c').write_text(NO_INTEGERS)
    run(program('gcc'), '-O1', '-g', '-w', '-o', 'no', 'no.c', seconds=60).ok()
    sentence = "'{}' returns a '{}', which the register of integers does not have; {}"
    check_same(record('-r', './no:nothing $retval', '--', './no').ended(2).err.splitlines()[0],
               "kymo: 'nothing' returns nothing (void); write %ax for what it happens to leave in the register",
               'a sentence about a function without a result')
    for spec, words in (('real $retval', ('real', 'double', 'write ($retval)')),
                        ('real x=$retval:s32',
                         ('real', 'double', 'write ($retval)')), ('extended $retval', ('extended', 'long double',
                                                                                       'write %ax for that register')),
                        ('complex $retval', ('complex', 'complex double', 'write %ax for that register')),
                        ('two +0($retval)', ('two', 'struct two', 'write %ax for that register')),
                        ('wide $retval', ('wide', '__int128', 'write %ax for that register')),
                        ('rea[l] ($retval)', ('real', 'double', 'write ($retval)')), ('rea* /retval > 0/',
                                                                                      ('real', 'double',
                                                                                       'write ($retval)')),
                        ('[ir]*[rl] (retval)', ('real', 'double', 'name it alone, and write ($retval)'))):
        result = record('-r', f'./no:{spec}', '--', './no')
        check_equal((result.status, result.err.splitlines()[0]), (2, f'kymo: {sentence.format(*words)}'),
                    f'sentence about {spec}')
    result = record('-r', './no:[ir]*[rl] $retval', '--', './no').ok()
    check_matches(
        result.err,
        "^kymo: warning: of 2 functions of '\\[ir\\]\\*\\[rl\\]', \\$retval is not what 1 returns \\(first: 'real' returns a 'double', ",
        'a warning about a pattern')
    result = record('--sum', './no:rea* retval', '--', './no')
    check_equal((result.status, result.err.splitlines()[0]),
                (2, f'kymo: {sentence.format("real", "double", "write ($retval)")}'), 'an aggregation')
    record('-r', './no:inte* retval', '-r', 'r:pair ./no:pair $retval:s32', '-r', './no:real %ax', '-r',
           './no:[np][oa]*[gr] $retval', '--', './no').ok()
    check_equal(lines('no:integer%return'), ['retval=1', 'retval=2', 'retval=3'], 'integers of a glob')
    check_equal(lines('pair'), ['arg1=1', 'arg1=2', 'arg1=3'], 'half a structure')
    (tmp / 'stub.s').write_text(
        '.globl main\n.type main, @function\nmain: mov $7, %eax\nnopl 0x100(%rax)\nret\n.fill 16, 1, 0x90\n.size main, . - main\n.section .note.GNU-stack, "", @progbits\n'
    )
    run(program('gcc'), '-Wa,--gdwarf-5', '-no-pie', '-o', 'stub', 'stub.s', seconds=60).ok()
    record('-r', './stub:main $retval:u32 retval', '--', './stub').ended(7)
    check_equal(lines('stub:main%return'), ['arg1=7 retval=7'], 'a function of an assembler, whose type is left open')


CLASSES = r'''
#define NOT_INLINE __attribute__((noinline, noipa))
template<typename T> struct holder { T x; holder(T x) : x(x) {} holder(const holder &other) : x(other.x) {} };
struct plain { int x; plain(int x) : x(x) {} bool is(const plain &other) const { return x == other.x; } };
struct real : plain { float y; real(int x) : plain(x), y(x * 0.5f) {} };
struct empty {};
struct floats : empty { float x; };
struct ended { int x; ~ended() { x = 0; } };
struct copied { int x; copied(int x) : x(x) {} copied(const copied &other) : x(other.x) {} };
struct within { copied c; };
struct table { virtual int get() { return 1; } };
extern "C" {
NOT_INLINE plain get_plain(int i) { return plain(i); }
NOT_INLINE real get_real(int i) { return real(i); }
NOT_INLINE floats get_floats(int i) { floats f; f.x = i * 0.5f; return f; }
NOT_INLINE ended get_ended(int i) { return ended{ i }; }
NOT_INLINE copied get_copied(int i) { return copied(i); }
NOT_INLINE within get_within(int i) { return within{ copied(i) }; }
NOT_INLINE holder<int> get_holder(int i) { return holder<int>(i); }
NOT_INLINE table get_table(int) { return table(); }
}
int main()
{
	int sum = 0;
	for (int i = 1; i < 4; i++)
		sum += get_plain(i).is(plain(i)) + get_real(i).y + get_floats(i).x + get_ended(i).x + get_copied(i).x + get_within(i).c.x + get_holder(i).x + get_table(i).get();
	return sum < 0;
}
'''


@timeout(180)
def test_objects_that_return_in_memory_are_not_taken_from_a_register(tmp):
    (tmp / 'classes.cc').write_text(CLASSES)
    for compiler in (('g++', '-O1'), ('g++', '-O0', '-gdwarf-4'), ('clang++', '-O1')):
        run(program(compiler[0]), *compiler[1:], '-g', '-w', '-o', 'classes', 'classes.cc', seconds=60).ok()
        record('-r', './classes:get_plain retval.x', '-r', './classes:get_real retval.x retval.y', '-r',
               './classes:get_floats retval.x', '--', './classes').ok()
        check_equal([lines(f'classes:get_{name}%return') for name in ('plain', 'real', 'floats')],
                    [['x=1', 'x=2', 'x=3'], ['x=1 y=0.5', 'x=2 y=1', 'x=3 y=1.5'], ['x=0.5', 'x=1', 'x=1.5']],
                    f'what is in registers with {compiler}')
        for name in ('ended', 'copied', 'within', 'holder', 'table'):
            result = record('-r', f'./classes:get_{name} retval.x', '--', './classes')
            check_equal(result.status, 2, f'status of {name} with {compiler}')
            check_matches(
                result.err,
                rf"^kymo: column {16 + len(name)}: the function returns a '[^']*{name}.*(has its address, so write|it is not certain in which register)",
                f'sentence about {name}')
