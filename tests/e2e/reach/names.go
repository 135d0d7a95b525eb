// Functions with each kind of name that Go has, which run as often as their names say.
package main

import (
	"example.org/go-2fa/yaml.v3"
	"os"
	"strconv"
)

type pair struct{ a, b int }

//go:noinline
func (p pair) sumThrice() int { return p.a + p.b }

type list[T any] struct{ items []T }

//go:noinline
func (l *list[T]) pushFiveTimes(item T) { l.items = append(l.items, item) }

type reader interface{ next() int }

type counter struct{ n int }

//go:noinline
func (c *counter) next() int {
	c.n++
	return c.n
}

type otherCounter struct{ n int }

//go:noinline
func (c *otherCounter) next() int {
	c.n += 2
	return c.n
}

//go:noinline
func each[T any](items []T, do func(T)) {
	for _, item := range items {
		do(item)
	}
}

//go:noinline
func takesWords(number int, text string, rest []int) int { return number + len(text) + len(rest) }

func main() {
	sum := 0
	for i := 0; i < 3; i++ {
		sum += pair{i, 1}.sumThrice()
	}
	numbers := list[int]{}
	for i := 0; i < 5; i++ {
		numbers.pushFiveTimes(i)
	}
	for _, r := range []reader{&counter{}, &counter{}, &otherCounter{}} {
		sum += r.next()
	}
	each(numbers.items, func(n int) { sum += n })
	each([]string{"a", "bc"}, func(s string) { sum += len(s) })
	for i := 0; i < 4; i++ {
		sum += yaml.Parse(strconv.Itoa(i))
	}
	sum += takesWords(42, "seven", []int{1, 2, 3})
	os.Stdout.WriteString(strconv.Itoa(sum) + "\n")
}
