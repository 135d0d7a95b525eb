"""Variables of C, C++ and Rust, optimized and inlined, have the values that gdb has for them at the same addresses."""
import json
import re
import shutil

from kymotest import check, check_equal, events, kymo, program, record, run, sampled, share, skip, timeout
from seeds import seed

C = r'''
struct point { short x, y; struct point *next; unsigned flags : 5; };
enum limits { LEAST = -3, MOST = 8 };
enum { HALF = 128 } unused;
static enum limits limit = MOST;
static int calls;
__attribute__((noinline)) void sink(long value) { calls += 3; __asm__ volatile("" :: "r"(value) : "memory"); }
static inline __attribute__((always_inline)) long scaled(long value, int by)
{
	long product = value * by;
	sink(product); /* here calls */
	return product + by;
}
static inline long folded(const struct point *point, unsigned char n)
{
	long sum = point->x - n;
	for (int i = 0; i < 2; i++) {
		sum += scaled(point->y, i + n);
		sink(sum); /* here point->x point->next->y point->flags */
	}
	return sum;
}
__attribute__((noinline)) long work(struct point *point, int count, unsigned long mask, signed char sign)
{
	long total = count * 2 + sign;
	unsigned short h1 = (unsigned short)(mask >> 1);
	double ratio = total / 4.0;
	sink(total + h1 + (long)ratio); /* here point->y *point sizeof(*point) mask&255 limit==MOST point->y>LEAST mask&HALF MOST+HALF */
	total += scaled(total, count) + folded(point, h1 & 15);
	sink(total); /* here */
	if (count > 2) {
		int inner = count * 5 + point->flags;
		sink(inner + total); /* here inner+count */
	}
	return total + (long)ratio;
}
int main(void)
{
	struct point points[3] = { { 5, -6, &points[1], 3 }, { -7, 8, &points[2], 21 }, { 9, 10, &points[0], 30 } };
	long sum = 0;
	for (int i = 0; i < 3; i++)
		sum += work(&points[i], i + 1, 0xfedcba9876543210 >> i, (signed char)(i - 2));
	return sum == 42;
}
'''

CPP = r'''
namespace shop {
long passed;
__attribute__((noinline)) void sink(long value) { passed += 2; asm volatile("" :: "r"(value) : "memory"); }
enum class Color : short { Red = 1, Blue = -7 };
namespace deep { enum Level { Low = 2, High = 40 }; Level level = High; }
template <typename T> struct Box { T value; unsigned char tag; };
struct Base { int id = 11; virtual ~Base() {} virtual long cost(int n) const = 0; };
static inline __attribute__((always_inline)) long scaled(long value, int by)
{
	long product = value * by;
	sink(product); /* here shop::passed */
	return product + by;
}
struct Item : Base {
	Box<long> box; Color color; bool sold; double weight; const char *label;
	Item(long v, Color c) : box{ v, 7 }, color(c), sold(v > 5), weight(v / 4.0), label("item") {}
	long cost(int n) const override;
	long twice(int n) const
	{
		long double_ = box.value * 2 + n;
		sink(double_); /* here box.tag */
		return double_ - id;
	}
};
long Item::cost(int n) const
{
	long total = box.value * n;
	short h2 = (short)(n / 2 + id);
	const Item &self = *this;
	sink(total + h2); /* here box.value this->box.tag self.sold sold id self.box.value+1 label[1] color==shop::Color::Blue self.color==shop::Color::Red n>shop::deep::Low shop::deep::Level::High+n shop::deep::level==shop::deep::High */
	total += scaled(total, n) + twice(n) + self.box.tag;
	sink(total); /* here */
	return total;
}
template <typename T> __attribute__((noinline)) T most(const Box<T> *boxes, unsigned n)
{
	T best = boxes[0].value;
	for (unsigned i = 1; i < n; i++) {
		T one = boxes[i].value;
		best = one > best ? one : best;
		sink((long)best); /* here boxes[i].value boxes->tag */
	}
	return best;
}
}
int main()
{
	shop::Item items[] = { { 3, shop::Color::Blue }, { 17, shop::Color::Red } };
	shop::Box<int> ints[] = { { 4, 1 }, { -5, 2 }, { 60, 3 } };
	shop::Box<short> shorts[] = { { -4, 1 }, { 50, 2 } };
	long sum = 0;
	for (int i = 0; i < 2; i++)
		sum += static_cast<shop::Base &>(items[i]).cost(i + 4) + shop::most(ints, 3) + shop::most(shorts, 2);
	return sum == 42;
}
'''

RUST = r'''
use std::hint::black_box;
#[derive(Clone, Copy)] #[repr(i16)] pub enum Color { Red = 1, Blue = -7 }
pub struct Item { pub id: u32, pub price: i64, pub color: Color, pub sold: bool, pub weight: f64 }
#[inline(never)] fn sink(value: i64) { black_box(value); }
#[inline(always)] fn scaled(value: i64, by: i32) -> i64 {
    let product = value.wrapping_mul(by as i64);
    sink(product); /* here */
    product + by as i64
}
#[inline(never)] fn cost(item: &Item, n: u16) -> i64 {
    let total = item.price * n as i64;
    let m4 = n > 3;
    let letter = (n as u8) + b'a';
    let small = (item.id as i8).wrapping_neg();
    let color = item.color;
    let weight = item.weight * 2.0;
    sink(total + letter as i64 + small as i64 + m4 as i64 + color as i64 + weight as i64); /* here color==app::Color::Blue item.price item.id+1 */
    let result = total + scaled(total, small as i32) + if m4 { 1 } else { 0 };
    sink(result); /* here */
    result
}
fn main() {
    let items = [Item { id: 7, price: 100, color: Color::Red, sold: true, weight: 0.5 },
                 Item { id: 200, price: -3, color: Color::Blue, sold: false, weight: 2.25 }];
    let mut sum = 0;
    for i in 0..6u16 { sum += cost(black_box(&items[(i % 2) as usize]), i); }
    println!("{}", sum + items[0].sold as i64);
}
'''

GDB = r'''
import gdb, json
asked = json.load(open('asked.json'))
found = {}

def number(value):
    if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        value = value.referenced_value()
    return float(value) if value.type.strip_typedefs().code == gdb.TYPE_CODE_FLT else int(value)

def frame_of(function):
    """That of the inlined function, or of the one that it was inlined into."""
    frame = gdb.newest_frame()
    while frame.type() == gdb.INLINE_FRAME and frame.name() and not frame.name().split('(')[0].endswith(function or '?'):
        frame = frame.older()
    return frame if not function or frame.type() == gdb.INLINE_FRAME else None

class Look(gdb.Breakpoint):
    def __init__(self, vaddr, words):
        super().__init__(f'*{vaddr:#x}')
        self.row, self.words = found.setdefault(str(vaddr), []), words

    def stop(self):
        row = []
        for word, function in self.words:
            try:
                frame = frame_of(function)
                if word.isidentifier():
                    row.append(number(frame.read_var(word)))
                else:
                    frame.select()
                    row.append(number(gdb.parse_and_eval(word)))
            except (gdb.error, ValueError, TypeError, AttributeError, OverflowError):
                row.append(None)
        self.row.append(row)
        return False

for vaddr, words in asked:
    Look(vaddr, words)
gdb.execute('run')
json.dump(found, open('found.json', 'w'))
'''

PER_PROBE = 8
NUMBER = re.compile(r'\*$|\b(char|short|int|long|unsigned|bool|float|double|enum|Color|[iu](8|16|32|64)|T)\b')
# What gdb finds in the caller's frame is not there to be read at the probe; and locations are computed with whole
# numbers.
IN_THE_CALLER = 'is told only by what was passed at the entry: record it there'
EXPLAINED = IN_THE_CALLER, 'is computed with a type that kymo does not compute with'


def offset_in_file(path, vaddr):
    for offset, start, size in re.findall(r'LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)',
                                          run('readelf', '-lW', path).ok().out):
        if int(start, 16) <= vaddr < int(start, 16) + int(size, 16):
            return vaddr - int(start, 16) + int(offset, 16)
    raise ValueError(vaddr)


def places(path, text):
    """Of each address of a line that says 'here': (address, [(word, the function that was inlined, why it is nowhere)])."""
    found = {}
    for number, line in enumerate((path.parent / text).read_text().splitlines(), 1):
        here = re.search(r'/\* here ?(.*?) ?\*/', line)
        listed = json.loads(kymo('list', '--json', '--vars', f'{path}:{text}:{number}').ok().out) if here else []
        for place in listed:
            names = [variable['name'] for variable in place['variables']]
            words = [(variable['name'], variable['inlined'], variable['where'] if variable['kind'] == 'nowhere' else '')
                     for variable in place['variables']
                     if names.count(variable['name']) == 1 and NUMBER.search(variable['type']) and
                     variable['size'] <= 8 and not variable['type'].endswith('*') and not variable['static']]
            own = next((variable['inlined'] for variable in place['variables'] if variable['inlined']), None)
            words += [(word, own, '') for word in here[1].split()]
            found.setdefault(place['vaddr'], words)
    return list(found.items())


def same(told, value):
    if isinstance(told, float):
        return float(value) == told
    value = re.sub(r'^\( .* : container = (-?\d+) \)$', r'\1', value)
    value = {'true': 1, 'false': 0}.get(value, value)
    return int(str(value), 0) % 2**64 == told % 2**64


def compare(path, text, what):
    """How many variables and expressions had the values that gdb has; and those that kymo does not know."""
    asked = places(path, text)
    (path.parent / 'look.py').write_text(GDB)
    (path.parent / 'asked.json').write_text(
        json.dumps([(vaddr, [(word, function) for word, function, _ in words]) for vaddr, words in asked]))
    run(program('gdb'), '-nx', '-batch', '-iex', 'set debuginfod enabled off', '-x', 'look.py', path, seconds=120).ok()
    told = json.loads((path.parent / 'found.json').read_text())
    n, unknown = 0, []
    for vaddr, words in asked:
        rows = told.get(str(vaddr), [])
        known = []
        for i, (word, _, why) in enumerate(words):
            if rows and all(row[i] is not None for row in rows):
                (unknown if why else known).append((i, word, why))
        n += check_place(path, vaddr, rows, known, what) if known else 0
    return n, unknown


def check_place(path, vaddr, rows, known, what):
    """How many of them were compared."""
    parts = [known[first:first + PER_PROBE] for first in range(0, len(known), PER_PROBE)]
    location = f'{path}:{offset_in_file(path, vaddr):#x}'
    options = [
        option for k, part in enumerate(parts)
        for option in ('-p', f'p:e{k} {location} ' + ' '.join(f'v{i}=({word})' for i, word, _ in part))
    ]
    result = record('--backend', 'inproc', *options, '--', path)
    refused = re.search(r'(?m)^ .*\n( +)\^', result.err)
    if refused:
        check(any(why in result.err for why in EXPLAINED), f'words at {vaddr:#x} of {what}', result.err)
        i = int(re.findall(r'v(\d+)=', refused[0].splitlines()[0][:len(refused[1])])[-1])
        return check_place(path, vaddr, rows, [row for row in known if row[0] != i], what)
    if result.status:
        check('cannot be probed' in result.err or 'not safe' in result.err, f'{vaddr:#x} of {what}', result.err)
        return 0
    found = {}
    for event in events():
        for i, _, _ in parts[int(event.name[1:])]:
            found.setdefault(i, []).append(event.fields[f'v{i}'])
    for i, word, _ in known:
        expected = [row[i] for row in rows]
        check(len(found.get(i, [])) == len(expected) and all(map(same, expected, found[i])),
              f'{word} at {vaddr:#x} with {what}: kymo {found.get(i)}, gdb {expected}')
    return len(known)


def check_builds(tmp, text, source, builds, least, part=3):
    """With every `part`th of the builds, and of them in all `least` values in proportion."""
    n, unknown = 0, []
    seed()
    chosen = share(builds, part)
    for build in chosen:
        (tmp / text).write_text(source)
        run(program(build[0]), *build[1:], '-o', 'app', text, seconds=120).ok()
        more, refused = compare(tmp / 'app', text, ' '.join(build))
        n += more
        unknown += [(build, *row) for row in refused if not row[2].endswith(EXPLAINED)]
    check(not unknown, 'what gdb alone knows', unknown)
    print(n, 'values')
    check(n >= least * len(chosen) // len(builds), f'{n} values are compared')


@sampled
@timeout(300)
def test_of_c(tmp):
    check_builds(
        tmp, 'app.c', C,
        [(compiler, '-w', '-no-pie', level, version) for compiler, level, version in (
            ('gcc', '-O0', '-gdwarf-4'), ('gcc', '-O2', '-gdwarf-5'), ('gcc', '-O3', '-gdwarf-4'),
            ('gcc', '-O3', '-gdwarf-5'), ('clang', '-O0', '-gdwarf-5'), ('clang', '-O2', '-gdwarf-5'),
            ('clang', '-O3', '-gdwarf-4'))], 150)


@sampled
@timeout(300)
def test_of_cpp(tmp):
    check_builds(
        tmp, 'app.cc', CPP,
        [(compiler, '-w', '-no-pie', level, version) for compiler, level, version in (
            ('g++', '-O0', '-gdwarf-5'), ('g++', '-O2', '-gdwarf-4'), ('g++', '-O3', '-gdwarf-5'),
            ('clang++', '-O0', '-gdwarf-4'), ('clang++', '-O2', '-gdwarf-5'), ('clang++', '-O3', '-gdwarf-5'))], 150)


@timeout(300)
def test_of_rust(tmp):
    if not shutil.which('rustc'):
        skip('rustc is not installed')
    check_builds(
        tmp, 'app.rs', RUST,
        [('rustc', '-g', '-A', 'warnings', '-C', 'relocation-model=static', '-C', f'opt-level={level}')
         for level in (0, 2, 3)], 30, part=1)


def test_parameters_of_rust_without_optimization_are_known_at_lines(tmp):
    if not shutil.which('rustc'):
        skip('rustc is not installed')
    (tmp / 'app.rs').write_text(RUST)
    run('rustc', '-g', '-A', 'warnings', '-C', 'opt-level=0', '-o', 'app', 'app.rs', seconds=120).ok()
    record('-p', './app:app::cost item->id n', '--', './app').wrong_words(
        "column 17: 'item' is in a frame that is not made yet here, and what passes it is not certain in its language; "
        'name a line of the function, as in FILE:SOURCE:LINE')
    line = 1 + next(i for i, text in enumerate(RUST.splitlines()) if 'let m4' in text)  # Rust handles SIGSEGV: no load
    record('-p', f'./app:app.rs:{line} item->id n', '--', './app').ok()
    check_equal([(event['id'], event['n']) for event in events()], [(200 if i % 2 else 7, i) for i in range(6)],
                'at the first line')
