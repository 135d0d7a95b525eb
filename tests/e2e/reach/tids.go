// tids [-w] THREADS CALLS: what tids.c does without options, with goroutines that keep a thread each. -w waits for a line on stdin first,
// with all threads there.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
)

type crowd struct {
	in, out, ready, begin sync.WaitGroup
	calls                 int64
}

//go:noinline
func inner(n int64) int64 {
	return 3*n + 1
}

//go:noinline
func outer(n int64, c *crowd) int64 {
	if c != nil {
		c.in.Done()
		c.in.Wait()
	}
	result := inner(n)
	if c != nil {
		c.out.Done()
		c.out.Wait()
	}
	return result + 7
}

// A function that finds its stack too small begins again when it has grown: so it grows before.
//
//go:noinline
func grow(n int) int {
	var a [64]int
	a[n&63] = n
	if n > 0 {
		return grow(n-1) + a[n&63]
	}
	return a[0]
}

func (c *crowd) call(index int64) {
	grow(200)
	c.ready.Done()
	c.begin.Wait()
	for k := int64(0); k < c.calls+index; k++ {
		with := c
		if k > 0 {
			with = nil
		}
		if outer(1000*index+k, with) != 3*(1000*index+k)+8 {
			panic("a wrong result")
		}
	}
	fmt.Printf("%d %d\n", syscall.Gettid(), index)
}

func init() {
	runtime.LockOSThread() // the first goroutine has the first thread
}

func main() {
	args := os.Args[1:]
	waits := len(args) > 0 && args[0] == "-w"
	if waits {
		args = args[1:]
	}
	debug.SetGCPercent(-1) // stacks stay as large as they are
	n, _ := strconv.Atoi(args[0])
	calls, _ := strconv.Atoi(args[1])
	c := &crowd{calls: int64(calls)}
	c.in.Add(n + 1)
	c.out.Add(n + 1)
	c.ready.Add(n + 1)
	c.begin.Add(1)
	var done sync.WaitGroup
	for i := 1; i <= n; i++ {
		done.Add(1)
		go func(index int64) {
			runtime.LockOSThread()
			c.call(index)
			done.Done()
		}(int64(i))
	}
	go func() {
		c.ready.Wait()
		if waits {
			fmt.Println("ready")
			bufio.NewReader(os.Stdin).ReadString('\n')
		}
		c.begin.Done()
	}()
	c.call(0)
	done.Wait()
}
