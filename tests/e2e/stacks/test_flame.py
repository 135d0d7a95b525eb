"""The flame graph in a browser: it fetches nothing, and its boxes zoom and are searched. Functions that have no name."""
import collections
import json
import re
import shutil

from kymotest import check, check_equal, kymo, record, run, skip, timeout

# What a user does, and what the page shows then. The result becomes the page's only paragraph.
VISIT = '''
function shown(){return boxes.filter(function(box){return box.style.display!='none'})
 .map(function(box){return [box.getAttribute('data-n'),box.getBoundingClientRect().width.toFixed(0)]}).sort()}
function named(name){return boxes.filter(function(box){return box.getAttribute('data-n')==name})}
function click(element){element.dispatchEvent(new MouseEvent('click',{bubbles:true}))}
function find(text){word.value=text;word.dispatchEvent(new Event('input'));return says.textContent}
var visit={};
visit.whole=shown();
click(named('parse')[0]);visit.zoomed=shown();
click(document.getElementById('whole'));visit.back=shown();
visit.found=find('^copy$');visit.marked=document.querySelectorAll('.found').length;
visit.broken=find('(');visit.cleared=find('');
visit.hovered=(named('copy')[0].dispatchEvent(new MouseEvent('mouseover')),says.textContent);
visit.fetched=performance.getEntriesByType('resource').map(function(entry){return entry.name});
document.body.innerHTML='<p id="visit"></p>';
document.getElementById('visit').textContent=JSON.stringify(visit);
'''


def build(tmp):
    (tmp / 'app.c').write_text(
        '__attribute__((noinline)) int copy(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }\n'
        '__attribute__((noinline)) int parse(int n) { int r = copy(n); __asm__ volatile("" : "+r"(r)); return r; }\n'
        '__attribute__((noinline)) int reply(int n) { int r = copy(n); __asm__ volatile("" : "+r"(r)); return r; }\n'
        'int main(void) { for (int i = 0; i < 4; i++) { parse(i); if (i) reply(i); } copy(0); return 0; }\n')
    run('gcc', '-O1', '-o', 'app', 'app.c').ok()


@timeout(200)
def test_boxes_zoom_and_are_searched_in_chromium(tmp):
    chromium = shutil.which('chromium')
    if not chromium:
        skip('needs chromium')
    build(tmp)
    record('--stack', '-p', './app:copy', '--', './app').ok()
    page = kymo('report', '--flame').ok().out
    (tmp / 'visited.html').write_text(page.replace('</script>', VISIT + '</script>'))
    dom = run(chromium, '--headless', '--no-sandbox', '--disable-gpu', f'--user-data-dir={tmp / "profile"}',
              '--window-size=1024,600', '--dump-dom', f'file://{tmp / "visited.html"}', seconds=120).ok().out
    found = re.search(r'<p id="visit">(.*?)</p>', dom)
    check(found, 'the page ran its script', dom)
    visit = json.loads(found[1].replace('&amp;', '&').replace('&lt;', '<').replace('&gt;', '>'))
    names = sorted(box[0] for box in visit['whole'])
    check_equal(names.count('copy'), 3, 'boxes of copy, by what calls it')
    check_equal(visit['back'], visit['whole'], 'the whole graph, again')
    width = dict(visit['whole'])['all']
    check_equal({name: wide for name, wide in visit['zoomed'] if wide != width}, {},
                'boxes that are not as wide as the page')
    check_equal(sorted(name for name, _ in visit['zoomed']), sorted(set(names) - {'reply'}),
                'parse, what it calls, and what calls it')
    check_equal(visit['found'], '100.0% of all records', 'the part of what was searched')
    check_equal(visit['marked'], 3, 'boxes that are marked')
    check_equal(visit['broken'], 'no regular expression', 'a search that is none')
    check_equal(visit['cleared'], '', 'an empty search')
    check(visit['hovered'].startswith('copy ('), 'the title of the box under the pointer', visit['hovered'])
    check_equal(visit['fetched'], [], 'what the page fetched')


def test_functions_of_a_stripped_program_are_apart(tmp):
    build(tmp)
    run('strip', '-o', 'bare', 'app').ok()
    start = {words[2]: int(words[0], 16) for words in map(str.split, run('nm', 'app').ok().out.splitlines())
             if len(words) == 3 and words[1] in 'tT'}
    record('--stack', '-p', f'./bare:{start["copy"]:#x}', '--', './bare').ok()
    counts = collections.Counter()
    for line in kymo('report', '--folded').ok().out.splitlines():
        stack, count = line.rsplit(' ', 1)
        counts[stack[stack.index(f'bare:{start["main"]:#x};'):]] += int(count)
    names = {name: f'bare:{start[name]:#x}' for name in ('main', 'parse', 'reply', 'copy')}
    check_equal(
        counts, {
            ';'.join(names[name] for name in path): count
            for path, count in ((('main', 'parse', 'copy'), 4), (('main', 'reply', 'copy'), 3), (('main', 'copy'), 1))
        }, 'stacks by the addresses of functions, which probes take')


def test_more_functions_without_a_name_than_there_is_room_for_names(tmp):
    """Their stacks are kept, and the last ones are called by their file alone."""
    n = 66000
    (tmp / 'many.c').write_text(
        '__attribute__((noinline)) void leaf(void) { __asm__ volatile(""); }\n'
        'extern char first[];\n'
        'int usleep(unsigned int);\n'
        f'int main(void) {{ for (int i = 0; i < {n}; i++) {{ if (!(i % 100)) usleep(2000);\n'
        '        ((void (*)(void))(first + 16 * i))(); } return 0; }\n'
        f'__asm__(".text\\n.p2align 4\\n.globl first\\n.hidden first\\nfirst:\\n.rept {n}\\n.cfi_startproc\\npush %rbp\\n"\n'
        '        ".cfi_def_cfa_offset 16\\n.cfi_offset 6, -16\\ncall leaf\\npop %rbp\\n.cfi_def_cfa_offset 8\\n"\n'
        '        "ret\\n.cfi_endproc\\n.p2align 4\\n.endr\\n");\n')
    run('gcc', '-O1', '-o', 'many', 'many.c').ok()
    symbols = [line.split() for line in run('nm', 'many').ok().out.splitlines()]
    leaf, main = ([int(words[0], 16) for words in symbols if words[-1] == name][0] for name in ('leaf', 'main'))
    run('strip', 'many').ok()
    result = record('--stack', '--stack-size', '1K', '--buffer', '256M', '-p', f'./many:{leaf:#x}', '--', './many').ok()
    check(re.search('66,000 events .*, none lost', result.err), 'all are recorded', result)
    check('stacks' not in result.err, 'all stacks are kept', result)
    counts = collections.Counter()
    for line in kymo('report', '--folded').ok().out.splitlines():
        stack, count = line.rsplit(' ', 1)
        counts[re.fullmatch(rf'.*many:{main:#x};(\[many\]|many:0x[0-9a-f]+);many:{leaf:#x}', stack)[1][0]] += int(count)
    check_equal(sum(counts.values()), n, 'stacks')
    check(60000 < counts['m'] < 65536, f'functions that are called by address: {counts["m"]}')
