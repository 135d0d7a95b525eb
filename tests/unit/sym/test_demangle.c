/* Names of C++ and Rust, and which functions a user's words mean. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sym/demangle.h"
#include "sym/glob.h"
#include "sym/names.h"
#include "testing.h"

struct pair {
	const char *mangled, *name; /* NULL: it is no mangled name */
};

static void demangles(const struct pair *pairs, size_t n)
{
	char text[KYMO_DEMANGLED_MAX];

	for (size_t i = 0; i < n; i++) {
		const bool done = kymo_demangle(pairs[i].mangled, text);

		if (done != !!pairs[i].name)
			fail_msg("%s: %s", pairs[i].mangled, done ? text : "is not demangled");
		if (done)
			assert_string_equal(text, pairs[i].name);
	}
}

static void names_of_rust_are_as_in_their_source(void **state)
{
	static const struct pair pairs[] = {
#include "rust_names.h"
	};

	demangles(pairs, kymo_countof(pairs));
}

static void names_of_cxx_are_as_in_their_source(void **state)
{
	static const struct pair pairs[] = {
		{ "_ZN4shop4Cart3addEi", "shop::Cart::add(int)" },
		{ "_ZNK4shop4Cart5totalEv", "shop::Cart::total() const" },
		{ "_ZN4shop5twiceIiEET_S1_", "shop::twice<int>(int)" },
		{ "_ZN4shop12_GLOBAL__N_16hiddenEi", "shop::(anonymous namespace)::hidden(int)" },
		{ "_ZN4shop4CartC2Ev", "shop::Cart::Cart()" },
		{ "_ZN4shop4CartD1Ev", "shop::Cart::~Cart()" },
		{ "_ZN4shop4CartpLERKNS_4ItemE", "shop::Cart::operator+=(shop::Item const&)" },
		{ "_ZN4shop4CartcvbEv", "shop::Cart::operator bool()" },
		{ "_Znwm", "operator new(unsigned long)" },
		{ "_Z3foov.cold", "foo() [clone .cold]" },
		{ "_Z3fooi.isra.0.part.1", "foo(int) [clone .isra.0] [clone .part.1]" },
		{ "_ZNSsC1Ev@GLIBCXX_3.4", "std::basic_string<char, std::char_traits<char>, std::allocator<char> "
					   ">::basic_string()@GLIBCXX_3.4" },
		{ "_ZThn8_N1A1fEv", "non-virtual thunk to A::f()" },
		{ "_Z3fooB5cxx11v", "foo[abi:cxx11]()" },
		{ "_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const" },
		{ "_Z", NULL },
		{ "_ZN", NULL },
		{ "_R", NULL },
		{ "malloc", NULL },
		{ "", NULL },
	};

	demangles(pairs, kymo_countof(pairs));
}

/* The name `begin`, then `n` times `again`, then `end`. Whatever it is, little time and no more than the room is taken.
 */
static void survives(const char *begin, const char *again, size_t n, const char *end)
{
	char *name = malloc(strlen(begin) + n * strlen(again) + strlen(end) + 1), *to = stpcpy(name, begin),
	     text[KYMO_DEMANGLED_MAX];
	struct timespec before, after;
	double seconds;

	for (size_t i = 0; i < n; i++)
		to = stpcpy(to, again);
	strcpy(to, end);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	if (kymo_demangle(name, text))
		assert_true(strlen(text) < KYMO_DEMANGLED_MAX);
	free(kymo_shown(name));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	seconds = (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
	if (seconds > 1)
		fail_msg("%.60s took %g s", name, seconds);
	free(name);
}

static void hostile_names_take_bounded_time_and_room(void **state)
{
	static const size_t numbers[] = { 10, 100, 250, 500, 1000, 10000, 1000000 };

	for (size_t i = 0; i < kymo_countof(numbers); i++) {
		const size_t n = numbers[i];

		survives("_Z1f", "P", n, "i");
		survives("_Z1f", "1AI", n, "i");
		survives("_Z1fI", "J", n, "E");
		survives("_Z1fIiEv", "DpT_", n, "");
		survives("_Z1f", "N1a", n, "E");
		survives("_Z1fXs", "cv", n, "i");
		survives("_Z1fDT", "cl", n, "E");
		survives("_Z1fM", "FvvE", n, "i");
		survives("_Z1fI1AS_S_ES_", "S0_S1_", n, "");
		survives("_Z", "Z1fvE", n, "1x");
		survives("_R", "I", n, "C1aE");
		survives("_RINvC1a1f", "R", n, "hE");
		survives("_RINvC1a1f", "T", n, "E");
		survives("_RINvC1a1f", "FG0_", n, "E");
		survives("_R", "Nv", n, "C1a");
		survives("_RINvC1a1fT", "TB9_B9_B9_E", n, "EE");
		survives("_RNvC1au", "9_aaaaaaaaa", n, "");
		survives("_ZN", "3$u7", n, "17h0123456789abcdefE");
		survives("_ZN", "1a", n, "17h0123456789abcdefE");
		survives("_ZN", "8operatorcv1a", n, "Ev");
	}
}

/* Each type is twice the one before: 2^40 letters in a few hundred. */
static void a_short_name_is_not_made_a_long_one(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[2000] = "_Z1f1AIiE", text[KYMO_DEMANGLED_MAX] = "";

	for (int i = 0; i < 30; i++) {
		char next[40], before[8] = "S_";

		if (i)
			snprintf(before, sizeof(before), "S%c_", digits[2 * i - 1]);
		if (2 * i - 1 > 34)
			break;
		snprintf(next, sizeof(next), "S_I%s%sE", before, before);
		strcat(name, next);
	}
	assert_true(strlen(name) < KYMO_MANGLED_MAX);
	if (kymo_demangle(name, text))
		assert_true(strlen(text) < KYMO_DEMANGLED_MAX);
	strcpy(name, "_RINvC1a1fT");
	for (int i = 0; i < 40; i++) {
		char next[40];
		const size_t at = strlen(name) - 2;

		snprintf(next, sizeof(next), i ? "TB%c%c_B%c%c_E" : "TThhEThhEE",
			 "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[at / 62], digits[at % 10],
			 '0', digits[at % 10]);
		strcat(name, next);
	}
	strcat(name, "EE");
	if (kymo_demangle(name, text))
		assert_true(strlen(text) < KYMO_DEMANGLED_MAX);
}

static void names_within_texts_are_shown_demangled(void **state)
{
	static const struct pair texts[] = {
		{ "app:_ZN4shop4Cart3addEi%return", "app:shop::Cart::add(int)%return" },
		{ "app:_ZN4shop4Cart3addEi+0x12", "app:shop::Cart::add(int)+0x12" },
		{ "memcpy=__memmove_avx", "memcpy=__memmove_avx" },
		{ "no safe place at _ZN4shop4Cart3addEi.", "no safe place at shop::Cart::add(int)." },
		{ "_Z3foov, _Z3fooi.cold", "foo(), foo(int) [clone .cold]" },
		{ "/tmp/_Z3foov: a_Z3foov $_Z3foov", "/tmp/_Z3foov: a_Z3foov $_Z3foov" },
		{ "_Zx _Ry", "_Zx _Ry" },
		{ "", "" },
	};

	for (size_t i = 0; i < kymo_countof(texts); i++) {
		char *shown = kymo_shown(texts[i].mangled);

		assert_string_equal(shown, texts[i].name);
		free(shown);
	}
}

static void words_mean_functions_as_debuggers_have_it(void **state)
{
	static const struct {
		const char *words, *name;
		bool matches;
	} cases[] = {
		{ "shop::Cart::add", "shop::Cart::add(int)", true },
		{ "::shop::Cart::add", "shop::Cart::add(int)", true },
		{ "shop::Cart::add(int)", "shop::Cart::add(int)", true },
		{ "shop::Cart::add( int )", "shop::Cart::add(int)", true },
		{ "shop::Cart::add()", "shop::Cart::add(int)", false },
		{ "shop::Cart::add(int, long)", "shop::Cart::add(int)", false },
		{ "Cart::add", "shop::Cart::add(int)", false },
		{ "shop::Cart", "shop::Cart::add(int)", false },
		{ "shop::Cart::ad", "shop::Cart::add(int)", false },
		{ "shop::Cart::total", "shop::Cart::total() const", true },
		{ "shop::Cart::total()", "shop::Cart::total() const", true },
		{ "shop::Cart::total() const", "shop::Cart::total() const", true },
		{ "shop::Cart::total() const", "shop::Cart::total()", false },
		{ "shop::*", "shop::Cart::add(int)", true },
		{ "shop::Cart::*(int)", "shop::Cart::add(int)", true },
		{ "shop::Cart::*(int)", "shop::Cart::add(int, int)", false },
		{ "shop::Cart::add(*)", "shop::Cart::add(int, int)", true },
		{ "shop::Cart::?dd", "shop::Cart::add(int)", true },
		{ "shop::hidden", "shop::(anonymous namespace)::hidden(int)", true },
		{ "shop::(anonymous namespace)::hidden", "shop::(anonymous namespace)::hidden(int)", true },
		{ "shop::twice", "shop::twice<int>(int)", true },
		{ "shop::twice<int>", "shop::twice<int>(int)", true },
		{ "shop::twice<long>", "shop::twice<int>(int)", false },
		{ "shop::Box::get", "shop::Box<std::vector<int> >::get<long>()", true },
		{ "shop::Box<std::vector<int>>::get", "shop::Box<std::vector<int> >::get<long>()", true },
		{ "shop::Box::g*", "shop::Box<int>::get<long>()", true },
		{ "f(const char *)", "f(char const*)", true },
		{ "f(char const*)", "f(char const*, int)", false },
		{ "f(const std::vector<const int*>&, int)", "f(std::vector<int const*> const&, int)", true },
		{ "f(void)", "f()", true },
		{ "f(const std::string &)",
		  "f(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)", true },
		{ "f", "f[abi:cxx11](int)", true },
		{ "f[abi:cxx11]", "f[abi:cxx11](int)", true },
		{ "f", "f(int) [clone .cold]", false },
		{ "f", "f(int) [clone .isra.0]", true },
		{ "f(int) [clone .cold]", "f(int) [clone .cold]", true },
		{ "V::operator+", "V::operator+(int)", true },
		{ "V::operator+", "V::operator++(int)", false },
		{ "V::operator*", "V::operator*(int)", true },
		{ "V::operator*", "V::operator+(int)", false },
		{ "V::operator[]", "V::operator[](int)", true },
		{ "V::operator()", "V::operator()(int) const", true },
		{ "V::operator()(int)", "V::operator()(int) const", true },
		{ "operator new", "operator new(unsigned long)", true },
		{ "operator new", "operator new[](unsigned long)", false },
		{ "V::operator bool", "V::operator bool() const", true },
		{ "A::f", "non-virtual thunk to A::f()", false },
		{ "app::shop::Cart::add", "<app::shop::Cart>::add", true },
		{ "<app::shop::Cart>::add", "<app::shop::Cart>::add", true },
		{ "app::gen", "app::gen::<i32>", true },
		{ "<T as core::fmt::Debug>::fmt", "<T as core::fmt::Debug>::fmt", true },
		{ "T::fmt", "<T as core::fmt::Debug>::fmt", false },
		{ "app::main::{closure#0}", "app::main::{closure#0}", true },
		{ "app::*", "<app::shop::Cart>::add", true },
	};

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		struct kymo_pattern *pattern = kymo_pattern_create(cases[i].words);

		if (kymo_pattern_matches(pattern, cases[i].name) != cases[i].matches)
			fail_msg("'%s' and '%s'", cases[i].words, cases[i].name);
		kymo_pattern_destroy(pattern);
	}
}

static void words_that_mangled_names_lack_are_found(void **state)
{
	static const struct {
		const char *words, *name;
		bool means;
	} cases[] = {
		{ "*lambda*", "_ZZ4mainENKUliE_clEi", true },
		{ "*lamb*", "_ZZ4mainENKUliE_clEi", true },
		{ "main::{lambda(int)#1}::operator()", "_ZZ4mainENKUliE_clEi", true },
		{ "*unsigned*", "_ZNK1ScvmEv", true },
		{ "S::operator unsigned long", "_ZNK1ScvmEv", true },
		{ "*unnamed*", "_Z2idIZ4mainEUt_ET_S1_", true },
		{ "*lambda*", "_ZNK1ScvmEv", false },
		{ "lambda", "_Z6lambdai", true },
		{ "*ambda*", "_Z6lambdai", true },
	};

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		struct kymo_pattern *pattern = kymo_pattern_create(cases[i].words);

		if (kymo_pattern_means(pattern, cases[i].name) != cases[i].means)
			fail_msg("'%s' and '%s'", cases[i].words, cases[i].name);
		kymo_pattern_destroy(pattern);
	}
}

static void what_is_a_glob_depends_on_where_it_stands(void **state)
{
	static const char *const names[] = { "f(char*)",           "f(char const*, int**)", "V::operator*",
					     "V::operator[](int)", "f[abi:cxx11]",          "a::<[u8] as T>::f",
					     "<*const T>::f" };
	static const char *const globs[] = { "shop::*", "f(*)", "f(int, *)", "V::oper*",
					     "f[abc]",  "f<*>", "*(int)",    "V::operator=*" };

	for (size_t i = 0; i < kymo_countof(names); i++)
		if (kymo_is_glob(names[i]))
			fail_msg("%s", names[i]);
	for (size_t i = 0; i < kymo_countof(globs); i++)
		if (!kymo_is_glob(globs[i]))
			fail_msg("%s", globs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_rust_are_as_in_their_source),
		cmocka_unit_test(names_of_cxx_are_as_in_their_source),
		cmocka_unit_test(hostile_names_take_bounded_time_and_room),
		cmocka_unit_test(a_short_name_is_not_made_a_long_one),
		cmocka_unit_test(names_within_texts_are_shown_demangled),
		cmocka_unit_test(words_mean_functions_as_debuggers_have_it),
		cmocka_unit_test(words_that_mangled_names_lack_are_found),
		cmocka_unit_test(what_is_a_glob_depends_on_where_it_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
