package lane

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"kvbooth/sidecar/api"
)

// Join makes lanes of one catalogue be steered as one from now on: whoever starts, stops,
// changes or takes one of them does it to all, and what one of them refuses happens to
// none. Conversation k of a run then has the same [Draw] on each. It is called once,
// before any of them is steered through the API. The lanes may already hold runs of a
// process before this one, and follow their clusters.
//
// Each lane puts a nonce of its own in front of its openings, so that none of them finds
// in a cache what another one left there.
func Join(lanes ...*Lane) {
	for _, l := range lanes {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	for _, l := range lanes {
		l.lanes, l.nonce = lanes, newNonce()
	}
}

// lockAll locks the lanes that are steered as one, always in the same order. It begins again
// where they were joined between the look at them and the last lock.
func (l *Lane) lockAll() (unlock func()) {
	for {
		l.mu.Lock()
		lanes := l.lanes
		l.mu.Unlock()
		for _, each := range lanes {
			each.mu.Lock()
		}
		unlock = func() {
			for _, each := range lanes {
				each.mu.Unlock()
			}
		}
		if len(lanes) == len(l.lanes) {
			return unlock
		}
		unlock()
	}
}

// others are those that are steered as one with the lane.
func (l *Lane) others() (all []*Lane) {
	for _, each := range l.lanes {
		if each != l {
			all = append(all, each)
		}
	}
	return all
}

// together makes a change of all lanes that are steered as one, once prepare has refused
// it for none of them, and gives the state of this one after it. Both are called with all
// locks held.
func (l *Lane) together(prepare func(*Lane) (change func(), err error)) (api.State, error) {
	err := func() error {
		defer l.lockAll()()
		changes := make([]func(), len(l.lanes))
		for i, each := range l.lanes {
			var err error
			if changes[i], err = prepare(each); err != nil {
				return l.of(each, err)
			}
		}
		l.align()
		for _, change := range changes {
			change()
		}
		return nil
	}()
	l.notify()
	return l.State(), err
}

// of names the lane that an error is of, where it is not the one that was asked.
func (l *Lane) of(other *Lane, err error) error {
	if err == nil || other == l {
		return err
	}
	return fmt.Errorf("lane %s: %w", other.opts.Name, err)
}

// align lets the next run of each lane go on behind as many conversations. All locks are
// held.
func (l *Lane) align() {
	var opened int64
	for _, each := range l.lanes {
		opened = max(opened, each.opened)
	}
	for _, each := range l.lanes {
		each.opened = opened
	}
}

// beginAll starts the run of each lane with the settings and modes in force. All locks are
// held.
func (l *Lane) beginAll(by string) {
	l.align()
	for _, each := range l.lanes {
		each.begin(by)
	}
}

// sharedWorkers are those that serve another lane, too.
func (l *Lane) sharedWorkers() []string {
	if l.opts.SharedWorkers == nil {
		return nil
	}
	return l.opts.SharedWorkers()
}

// disturbed says why the lane's figures are not those of its target alone; empty: they are.
func (l *Lane) disturbed() string {
	n := len(l.sharedWorkers())
	if n == 0 {
		return ""
	}
	var names []string
	for _, other := range l.others() {
		names = append(names, other.opts.Name)
	}
	return fmt.Sprintf("%d of the workers also serve lane %s: the lanes affect each other", n,
		strings.Join(names, " and "))
}

// goAll runs f as a job that every one of the lanes waits for. All locks are held.
func (l *Lane) goAll(f func()) {
	done := make(chan struct{})
	for _, each := range l.others() {
		each.wg.Go(func() { <-done })
	}
	l.wg.Go(func() {
		defer close(done)
		f()
	})
}

// awaitAll waits for channels to be closed, or for the end of ctx, whose error it gives.
func awaitAll(ctx context.Context, ended []<-chan struct{}) error {
	for _, c := range ended {
		select {
		case <-c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// atOnce runs f for every number below n at once, and returns when all have returned.
func atOnce(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
