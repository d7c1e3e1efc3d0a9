package lane

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"kvbooth/sidecar/api"
)

// Join joins lanes of one catalog from now on: a change of one of them is made on all, or refused
// for all. Conversation k of a run then has the same [Draw] on each. Join is called once, before
// any of the lanes is changed through the API. The lanes may already hold resumed runs, and follow
// their clusters.
//
// Each lane puts a nonce of its own in front of its openings, so that its prefixes are not found in
// a cache that another lane has filled.
func Join(lanes ...*Lane) {
	for _, l := range lanes {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	for _, l := range lanes {
		l.lanes, l.nonce = lanes, newNonce()
	}
}

// lockAll locks the joined lanes, always in the same order. It starts over if the lanes were joined
// meanwhile.
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

// others returns the other joined lanes.
func (l *Lane) others() (all []*Lane) {
	for _, each := range l.lanes {
		if each != l {
			all = append(all, each)
		}
	}
	return all
}

// changeAll makes a change of all joined lanes, unless prepare refuses it for one of them. It
// returns the state of this lane after the change. Prepare and change are called with all locks
// held.
func (l *Lane) changeAll(prepare func(*Lane) (change func(), err error)) (api.State, error) {
	err := func() error {
		defer l.lockAll()()
		changes := make([]func(), len(l.lanes))
		for i, each := range l.lanes {
			var err error
			if changes[i], err = prepare(each); err != nil {
				return l.nameLane(each, err)
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

// nameLane adds the lane's name to an error of another lane.
func (l *Lane) nameLane(other *Lane, err error) error {
	if err == nil || other == l {
		return err
	}
	return fmt.Errorf("lane %s: %w", other.opts.Name, err)
}

// align sets the number of earlier conversations to the same value on all lanes. All locks are
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

// beginAll starts the runs of all lanes with the settings and modes in force. All locks are held.
func (l *Lane) beginAll(actor string) {
	l.align()
	for _, each := range l.lanes {
		each.begin(actor)
	}
}

// SharedWorkers returns the workers that also serve another lane. The list must not be modified.
func (l *Lane) SharedWorkers() []string {
	if l.opts.SharedWorkers == nil {
		return nil
	}
	return l.opts.SharedWorkers()
}

// disturbed returns the reason why the lane's figures do not only depend on its target; empty if
// they do.
func (l *Lane) disturbed() string {
	n := len(l.SharedWorkers())
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

// runJoint runs f in a goroutine that the end of each joined lane waits for. All locks are held.
func (l *Lane) runJoint(f func()) {
	done := make(chan struct{})
	for _, each := range l.others() {
		each.wg.Go(func() { <-done })
	}
	l.wg.Go(func() {
		defer close(done)
		f()
	})
}

// awaitAll waits until all channels are closed. It returns the error of ctx if that ends first.
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

// concurrently runs f for every number below n, and returns when all calls have returned.
func concurrently(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
