// Goroutines that use their stacks to the end: functions that do not look whether there is enough left, called at all depths.
package main

import "runtime"

//go:nosplit
//go:noinline
func leaf(x int64) int64 {
	var a [30]int64
	a[x&15] = x
	a[x&7+8] += 3
	return a[x&15] + x
}

//go:nosplit
//go:noinline
func middle(x int64) int64 {
	var a [25]int64
	a[x&15] = x + 1
	return leaf(x) + a[x&15]
}

//go:nosplit
//go:noinline
func top(x int64) int64 {
	var a [25]int64
	a[x&15] = x + 2
	return middle(x) + a[x&15]
}

//go:noinline
func deep(n int) int64 {
	if n == 0 {
		return top(7)
	}
	return deep(n-1) + top(int64(n&1023))
}

func check(g int, done chan bool) {
	var words [8]int64
	for i := range words {
		words[i] = int64(g*1000 + i)
	}
	for depth := 1 + g%8; depth < 140; depth += 8 + g%3 {
		wanted := expected(7)
		for n := 1; n <= depth; n++ {
			wanted += expected(int64(n & 1023))
		}
		if deep(depth) != wanted {
			panic("a wrong sum")
		}
	}
	for i := range words {
		if words[i] != int64(g*1000+i) {
			panic("a stack was written to")
		}
	}
	done <- true
}

func expected(x int64) int64 {
	var a [30]int64
	a[x&15] = x
	a[x&7+8] += 3
	return a[x&15] + x + x + 1 + x + 2
}

func main() {
	done := make(chan bool)
	for round := 0; round < 4; round++ {
		for g := 0; g < 100; g++ {
			go check(g, done)
		}
		for g := 0; g < 100; g++ {
			<-done
		}
		runtime.GC()
	}
	println("ok")
}
