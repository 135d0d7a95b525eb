/* Functions with names as rustc makes them, called so often as their numbers say: both manglings, a closure, a generic
 * function twice. */
#define KEPT __attribute__((noinline, noclone, used))

KEPT int cart_add(int price) __asm__("_RNvMNtCs6xxl1lAjzDf_3app4shopNtB2_4Cart3add");
KEPT int cart_total(int price) __asm__("_RNvMNtCs6xxl1lAjzDf_3app4shopNtB2_4Cart5total");
KEPT int generic_int(int value) __asm__("_RINvCs6xxl1lAjzDf_3app3genlEB2_");
KEPT int generic_tuple(int value) __asm__("_RINvCs6xxl1lAjzDf_3app3genTaEEB2_");
KEPT int closure(int value) __asm__("_RNCNvCs6xxl1lAjzDf_3app4mains_0");
KEPT int legacy(int value) __asm__("_ZN3app5store4load17h85dfb40cbd1c0c9eE");
KEPT int legacy_int(int value) __asm__("_ZN3app14Stack$LT$T$GT$4push17h0123456789abcdefE");
KEPT int legacy_byte(int value) __asm__("_ZN3app14Stack$LT$T$GT$4push17hfedcba9876543210E");

int cart_add(int price)
{
	__asm__ volatile("");
	return price + 1;
}

int cart_total(int price)
{
	__asm__ volatile("");
	return price + 2;
}

int generic_int(int value)
{
	__asm__ volatile("");
	return value + 3;
}

int generic_tuple(int value)
{
	__asm__ volatile("");
	return value + 4;
}

int closure(int value)
{
	__asm__ volatile("");
	return value + 5;
}

int legacy(int value)
{
	__asm__ volatile("");
	return value + 6;
}

int legacy_int(int value)
{
	__asm__ volatile("");
	return value + 7;
}

int legacy_byte(int value)
{
	__asm__ volatile("");
	return value + 8;
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 9; i++)
		sum += legacy_int(i) + (i < 4 ? legacy_byte(i) : 0);
	for (int i = 0; i < 7; i++)
		sum += cart_add(i);
	for (int i = 0; i < 5; i++)
		sum += legacy(i) + generic_int(i);
	for (int i = 0; i < 3; i++)
		sum += closure(i) + generic_tuple(i);
	return cart_total(sum) == 0;
}
