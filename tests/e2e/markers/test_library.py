"""libkymo-marker in real programs: modules that come and go, threads, signals, fork, what the system forbids, and
sanitizers. What single calls promise is in tests/unit/lib."""
import shutil

from kymotest import (NOBODY, SOURCE, TARGETS, check, check_equal, check_matches, check_same, program, run, skip,
                      target_path, timeout)

MARKERS = TARGETS / 'markers'
EXAMPLES = TARGETS.parents[1] / 'examples'
LIBRARY = TARGETS.parents[1] / 'lib/libkymo-marker.so.1'
SOURCES = SOURCE / 'tests/targets/markers'


def markers(name, *args, **options):
    return run(target_path(f'markers/{name}'), *args, **options).ok()


def check_storm(result, least=1):
    """Numbers are of this machine's speed; that some are 0 is not."""
    said = result.json()
    wrong = {key: said[key] for key in ('wrong', 'late', 'broken', 'failed')}
    check_equal(wrong, {'wrong': 0, 'late': 0, 'broken': 0, 'failed': 0}, 'what went wrong')
    check(said['calls'] >= least and said['toggles'] >= 2000 * least and said['handled'], 'it was stormy', result)


# ---- the two programs of the examples ------------------------------------------------------------

WITHOUT, WITH = '', '''\
subsys_begin: 3 to do
subsys_event: 0 is zero
subsys_event: 1 is one
subsys_event: 2 is many
subsys_end: 3 events
unloaded
'''


def test_the_examples_do_what_they_say():
    main, module = EXAMPLES / 'marked-main', EXAMPLES / 'libprobe-module.so'
    check(main.exists() and module.exists(), f'{EXAMPLES} is built')
    check_same(run(main).ok().out, WITHOUT)
    check_same(run(main, module).ok().out, WITH)
    check_same(run(main, module, 20).ok().out, 20 * WITH)


# ---- modules -------------------------------------------------------------------------------------


def test_probes_wait_for_a_module_that_comes_and_goes():
    check_equal(markers('modules', 'comings', MARKERS / 'module.so', 200).json(), {'calls': 201})


def test_markers_of_one_name_are_told_apart_by_module():
    said = markers('modules', 'two', MARKERS / 'module.so', MARKERS / 'module-other.so').json()
    check_same(said, 3 * ['module.so value=%d 0'] + 3 * ['module-other.so other=%d 1'])


def test_the_object_of_a_probe_may_be_unloaded_at_once():
    said = markers('modules', 'unload', MARKERS / 'probe-object.so', 2).json()
    check(said['unloads'] > 0 and said['calls'] > 0, 'it was done', said)


# ---- threads and signals -------------------------------------------------------------------------


def test_a_thousand_sites_are_toggled_under_eight_threads():
    check_storm(markers('storm', 4, 8))


def test_ten_thousand_sites_of_ten_modules_are_toggled_under_eight_threads(tmp):
    """They are copies: each its own file, as the loader tells them apart by that."""
    objects = [shutil.copy(MARKERS / 'storm-object.so', tmp / f'{n}.so') for n in range(9)]
    check_storm(markers('storm', 2, '8:1000', *objects))


def test_a_thousand_sites_are_toggled_under_one_thread():
    check_storm(markers('storm', 1, 1))


def test_the_portable_form_is_toggled_under_eight_threads():
    check_storm(markers('storm-portable', 2, 8))


def test_a_static_program_has_all_of_it():
    check_storm(markers('storm-static', 2, 4))


# ---- what may go wrong ---------------------------------------------------------------------------


def test_without_membarrier_threads_are_not_endangered():
    markers('manners', 'no-membarrier')
    markers('manners', 'late-filter')


def test_where_text_may_not_be_written_nothing_changes():
    markers('manners', 'no-write')


def test_where_the_process_is_not_dumpable_nothing_changes(tmp):
    for path in (target_path('markers/manners'), LIBRARY):
        shutil.copy(path, tmp)
    tmp.chmod(0o755)
    run(tmp / 'manners', 'no-open', env={'LD_LIBRARY_PATH': str(tmp)}, user=NOBODY).ok()


def test_breakpoints_stay_where_they_are():
    markers('manners', 'breakpoint')


def test_what_others_have_changed_stays_as_it_is():
    markers('manners', 'foreign')


def test_children_have_probes_of_their_own():
    markers('manners', 'fork')


# ---- the shared object itself --------------------------------------------------------------------

EXPORTED = '''\
kymo_marker_disable_probe@@KYMO_MARKER_1
kymo_marker_for_each@@KYMO_MARKER_1
kymo_marker_module_comes@@KYMO_MARKER_1
kymo_marker_module_goes@@KYMO_MARKER_1
kymo_marker_record@@KYMO_MARKER_1
kymo_marker_record_end@@KYMO_MARKER_1
kymo_marker_set_probe@@KYMO_MARKER_1
'''


def test_nothing_is_exported_but_what_the_headers_declare():
    lines = run(program('nm'), '-D', '--defined-only', LIBRARY).ok().out.splitlines()
    names = sorted(line.split()[2] for line in lines if line.split()[1] in 'TWDBVi')
    check_same(names, EXPORTED)
    check_matches(run(program('readelf'), '-d', LIBRARY).ok().out, 'NODELETE')


# ---- ThreadSanitizer -----------------------------------------------------------------------------


@timeout(600)
def test_thread_sanitizer_has_nothing_to_say(tmp):
    """The library is built for it with the project's own meson.build, and the programs are."""
    compiler = program('gcc')
    (tmp / 'empty.c').write_text('int main(void) { return 0; }\n')
    if run(compiler, '-fsanitize=thread', tmp / 'empty.c', '-o', tmp / 'empty').status != 0:
        skip('gcc has no libtsan')
    if run(tmp / 'empty').status != 0:
        skip('ThreadSanitizer does not run on this kernel')
    build = tmp / 'build'
    run(program('meson'), 'setup', build, SOURCE, '-Db_sanitize=thread', '-Db_lundef=false', '-Dtests=disabled',
        '-Doptimization=1', env={'CC': compiler}, seconds=200).ok()
    run(program('ninja'), '-C', build, 'lib/libkymo-marker.so.1.0.0', seconds=300).ok()
    flags = ['-std=gnu17', '-D_GNU_SOURCE', '-g', '-O1', '-fsanitize=thread', '-I', SOURCE / 'include']
    for name, *more in ('storm', SOURCES / 'storm_sites.c'), ('manners', ), ('modules', ):
        run(compiler, *flags, SOURCES / f'{name}.c', *more, '-o', tmp / name, '-pthread',
            build / 'lib/libkymo-marker.so.1.0.0', f'-Wl,-rpath,{build}/lib').ok()
    for name in ('module', 'probe_object'):
        run(compiler, *flags, '-shared', '-fPIC', SOURCES / f'{name}.c', '-o', tmp / f'{name}.so').ok()
    clean = {'TSAN_OPTIONS': 'exitcode=66'}
    check_storm(run(tmp / 'storm', 3, 4, env=clean).ok())
    for command in (['manners', 'fork'], ['manners',
                                          'foreign'], ['modules', 'comings', tmp / 'module.so',
                                                       '50'], ['modules', 'unload', tmp / 'probe_object.so', '2']):
        result = run(tmp / command[0], *command[1:], env=clean).ok()
        check('WARNING' not in result.err, 'it has nothing to say', result)
