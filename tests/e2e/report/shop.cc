/* Names that only a demangler can read: namespaces, overloads, templates, operators, an anonymous namespace, a destructor. */
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace shop {

struct Item {
	std::string name;
	int price;
};

class Cart {
public:
	Cart();
	~Cart();
	void add(int price);
	void add(const std::string &name, int price);
	void add(const std::vector<Item> &items);
	int total() const;
	Cart &operator+=(const Item &item);

private:
	std::vector<Item> items;
};

#define KEPT __attribute__((noinline, used))

KEPT Cart::Cart() {}
KEPT Cart::~Cart() {}
KEPT void Cart::add(int price) { items.push_back({ "thing", price }); }
KEPT void Cart::add(const std::string &name, int price) { items.push_back({ name, price }); }
KEPT void Cart::add(const std::vector<Item> &more) { items.insert(items.end(), more.begin(), more.end()); }
KEPT Cart &Cart::operator+=(const Item &item) { items.push_back(item); return *this; }

KEPT int Cart::total() const
{
	int sum = 0;

	for (const Item &item : items)
		sum += item.price;
	return sum;
}

template <typename T> KEPT T twice(T value)
{
	asm volatile("");
	return value + value;
}

namespace {
KEPT int hidden(int a)
{
	asm volatile("");
	return a + 1;
}
}

} // namespace shop

int main()
{
	shop::Cart cart;

	for (int i = 0; i < 7; i++)
		cart.add(i);
	for (int i = 0; i < 5; i++)
		cart.add("apple", i);
	for (int i = 0; i < 3; i++)
		cart.add(std::vector<shop::Item>{ { "pear", i } });
	cart += shop::Item{ "plum", 2 };
	cart += shop::Item{ "fig", 2 };
	printf("%d %d %d %g\n", cart.total(), shop::hidden(1), shop::twice(3), shop::twice(2.5));
}
