/*
 * Markers of all kinds in C++ (11); marker_by_hand.c has main().
 */
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "marker_forms.h"

int forms_evaluated;

int forms_evaluate(int x)
{
	forms_evaluated++;
	return x;
}

namespace {

unsigned int sum;
volatile int three = 3;	/* compilers don't know */

void add(long long x)
{
	sum = sum * 31 + static_cast<unsigned int>(x);
}

enum colour : unsigned short { RED, GREEN = 7 };
enum class strong { NO, YES };

struct bits {
	unsigned int low : 3;
	int high : 5;
};

/* All of its special members have markers, and are inlined or not. */
class thing {
public:
	explicit thing(int n) : number(n), text(static_cast<std::size_t>(n), 'x')
	{
		MARK(thing_made, "n=%d text=%s", n, text.c_str());
	}
	thing(const thing &other) : number(other.number + 1), text(other.text)
	{
		MARK(thing_copied, "%d", number);
	}
	thing &operator=(const thing &) = delete;
	virtual ~thing()
	{
		MARK(thing_gone, "%d", number);
	}
	virtual int value() const
	{
		MARK(thing_value, "%d %s", number, text.c_str());
		return number;
	}
	static int count(int n)
	{
		MARK(thing_count, "%d", n);
		return n * 2;
	}
	int operator()(int n) const
	{
		MARK(thing_called, "%d %d", n, number);
		return n + number;
	}
	int by_lambda() const
	{
		auto inner = [this](int n) {
			MARK(lambda_of_thing, "%d %d", n, number);
			return n * number;
		};
		return inner(2) + inner(three);
	}

protected:
	int number;
	std::string text;
};

class other final : public thing {
public:
	explicit other(int n) : thing(n) {}
	int value() const override
	{
		MARK(other_value, "%d", number);
		return thing::value() * 2;
	}
};

struct before_main {
	before_main()
	{
		MARK(before_main, "%d", forms_evaluate(1));
		value = three;
	}
	~before_main()
	{
		MARK(after_main, MARK_NOARGS);
	}
	int value;
};

before_main early;

template <typename T> T twice(T x)
{
	std::string local(2, 'y');

	MARK(twice, "size=%zu %s", sizeof(x), local.c_str());
	return static_cast<T>(x + x);
}

/* The type of the marker's argument depends on the template's. */
template <typename T> struct dependent;
template <> struct dependent<int> { static constexpr int begin = 0; };
template <> struct dependent<long long> { static constexpr int begin = 1; };

template <typename T> long long of_type(T x, typename std::enable_if<std::is_integral<T>::value>::type * = nullptr)
{
	MARK(of_type, "%lld %s", static_cast<long long>(x), dependent<T>::begin ? "long long" : "int");
	return static_cast<long long>(x) * 2;
}

template <int n> struct counted {
	static int run(int x)
	{
		MARK(counted, "%d %d", n, x);
		return counted<n - 1>::run(x + 1) + n;
	}
};
template <> struct counted<0> {
	static int run(int x) { return x; }
};

template <typename... Types> int pack(Types... values)
{
	std::vector<int> all{static_cast<int>(values)...};

	for (int value : all)
		MARK(pack, "%zu %d", sizeof...(values), value);
	return all.back();
}

int thrown(int n)
{
	thing guard(n);

	try {
		thing inner(n + 1);

		MARK(will_throw, "%d", n);
		if (n)
			throw std::runtime_error("reason");
		MARK(not_thrown, "%d", n);
	} catch (const std::exception &error) {
		MARK(caught, "what=%s", error.what());
		return guard.value();
	}
	return 0;
}

void types()
{
	signed char c = -1;
	unsigned char uc = 200;
	short s = -300;
	char16_t c16 = 60000;
	bits field = { 5, -3 };
	char own[] = "own";
	int array[2] = { 1, 2 };
	std::nullptr_t null = nullptr;

	add(array[1] + own[0]);
	MARK(integers, "%d %d %d %d b=%d e=%d s=%d", c, uc, s, c16, three == 3, GREEN, static_cast<int>(strong::YES));
	MARK(longs, "%ld %lu %lld %llu %zu", -6L, 4000000000UL, -7000000000LL, 0x123456789abcdefULL, sizeof(array) / 8);
	MARK(floats, "%f %g", 0.5, 1e9);
	MARK(bits, "%u %d", field.low, field.high);
	MARK(strings, "%s %s %s", "text", own, std::string("temporary").c_str());
	MARK(pointers, "%p %p", reinterpret_cast<void *>(0x1234), null);
	MARK(effects, "%d %d", forms_evaluate(1), forms_evaluate(2));
}

int scopes(int n)
{
	std::unique_ptr<thing> owner(new other(n));
	int result = owner->value();

	for (int i = 0; i < 2; i++) {
		std::string inner(static_cast<std::size_t>(i), 'z');

		switch (i) {
		case 0:
			MARK(scope_zero, "[%s]", inner.c_str());
			break;
		default:
			if (n)
				MARK(scope_other, "%s", inner.c_str());
			else
				MARK(scope_never, "%s", inner.c_str());
		}
	}
	return result;
}

/* The values of xmm registers, and all that calls would change, live on across the marker. */
double live(const double *x, const long *y, int n)
{
	double a = x[0], b = x[1], c = x[2], d = x[3];
	long i = y[0], j = y[1], k = y[2], l = y[3], m = y[4], o = y[5];

	for (int turn = 0; turn < n; turn++) {
		MARK(live, "%d %ld %f", turn, i, a);
		a += b;
		b += c;
		c += d;
		i += j;
		j += k;
		k += l;
		l += m;
		m += o;
		o += turn;
	}
	return a + b + c + d + static_cast<double>(i + j + k + l + m + o);
}

}

unsigned int forms_run()
{
	double x[] = { 1.5, 0.25, 0.5, 1 };
	long y[] = { 1, 2, 3, 4, 5, 6 };

	MARK(begin, MARK_NOARGS);
	sum = 1;
	types();
	{
		thing one(three);
		thing two(one);

		add(one.value() + two(5) + two.by_lambda());
	}
	add(thing::count(early.value));
	auto lambda = [&](int n) -> int {
		MARK(lambda, "%d %u", n, sum);
		return n + 1;
	};
	add(lambda(three));
	add(twice(three + 0) + twice('\x20') + static_cast<int>(twice(1.5)));
	add(of_type(-5) + of_type(7LL));
	add(counted<3>::run(three));
	add(pack(1, 'b', 3L));
	add(thrown(three));
	add(scopes(three));
	add(static_cast<long long>(live(x, y, three) * 4));
	add(forms_static_inline(three, "static") + forms_inline(three));
	MARK(end, "sum=%u", sum);
	return sum;
}
