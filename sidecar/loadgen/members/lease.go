package members

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// A lease holds for leaseSpan from its last renewal. The member counts from the time at which it
// sent the renewal, the coordinator from the time at which it received it, which is later. So a
// member has stopped before its share is given to others.
const (
	leaseSpan   = 3 * time.Second
	renewEvery  = 500 * time.Millisecond
	leaseMargin = 500 * time.Millisecond // time for a member without a lease to stop
)

// lease is a member's permission to send requests and messages. It is safe for concurrent use.
type lease struct {
	base  time.Time    // has a monotonic reading
	until atomic.Int64 // end of the lease in ns since base; only grows, or becomes leaseEnded
}

const leaseEnded = -1

// newLease returns a lease that does not hold before its first renewal.
func newLease() *lease { return &lease{base: time.Now()} }

// renewed records a renewal that was sent at the given time and has been acknowledged. A lease that
// has ended is not renewed.
func (l *lease) renewed(sent time.Time) {
	next := int64(sent.Sub(l.base) + leaseSpan - leaseMargin)
	for {
		now := l.until.Load()
		if now == leaseEnded || next <= now || now != 0 && int64(time.Since(l.base)) >= now {
			return
		}
		if l.until.CompareAndSwap(now, next) {
			return
		}
	}
}

// holds reports whether the lease holds now. It is checked before every request and every message,
// since a process that was stopped by a signal continues wherever it was. It only reads the clock.
func (l *lease) holds() bool {
	until := l.until.Load()
	return until != leaseEnded && int64(time.Since(l.base)) < until
}

// lost reports whether the lease was held and has ended.
func (l *lease) lost() bool { return l.until.Load() != 0 && !l.holds() }

// end gives up the lease.
func (l *lease) end() { l.until.Store(leaseEnded) }

// watch returns when the lease has ended, or ctx has ended.
func (l *lease) watch(ctx context.Context) {
	for l.holds() {
		wait := time.NewTimer(time.Duration(l.until.Load()) - time.Since(l.base))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// ErrCoordinated means that another load generator coordinates the members of this fleet.
var ErrCoordinated = errors.New("another load generator coordinates these members")

const coordinatorKey = "coordinator"

// claim is a coordinator's lease of its fleet: two coordinators would give numbers twice. A
// coordinator that cannot renew it writes nothing from then on, by its own monotonic clock. Each
// coordinator that takes the claim writes an epoch of its own. By that, one that was disconnected
// detects that another one held the claim meanwhile, and gave numbers that it does not know.
type claim struct {
	bus          *bus
	owner, value string
	epoch        string // of this process, with its name; another value means that another one took the claim

	mu       sync.Mutex // held during a renewal
	revision uint64     // of the key at the last write
	taken    bool       // the epoch is written

	base  time.Time    // has a monotonic reading
	until atomic.Int64 // end of the claim in ns since base
}

// newClaim returns a claim that is not held yet.
func newClaim(b *bus, o Options) *claim {
	owner := cmp.Or(o.Owner, nuid.Next())
	return &claim{bus: b, owner: owner, value: owner + " " + o.Name, epoch: nuid.Next() + " " + o.Name, base: time.Now()}
}

// holds reports whether the coordinator may write. Unlike a member's lease, a claim can be held
// again after it has ended: if no other coordinator took it meanwhile, the coordinator continues.
func (c *claim) holds() bool { return int64(time.Since(c.base)) < c.until.Load() }

// take takes the claim. It waits until the claim of a coordinator that was killed has ended. A
// claim of the same owner is taken at once.
func (c *claim) take(ctx context.Context) error {
	if err := retry(ctx, leaseSpan+time.Second, func() error { return c.renew(ctx) }); err != nil {
		return err
	}
	return c.begin(ctx)
}

// epochKey is in the bucket of orders, since keys there do not expire with the claim.
const epochKey = "epoch"

// begin writes the epoch.
func (c *claim) begin(ctx context.Context) error {
	ctx, cancel := c.bus.withTimeout(ctx, leaseSpan/2)
	defer cancel()
	if _, err := c.bus.orders.PutString(ctx, epochKey, c.epoch); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = true
	return nil
}

// checkEpoch returns [ErrCoordinated] if another coordinator took the claim after this one did.
func (c *claim) checkEpoch(ctx context.Context) error {
	if !c.taken {
		return nil
	}
	e, err := c.bus.orders.Get(ctx, epochKey)
	if err == nil && string(e.Value()) != c.epoch {
		return coordinated(e)
	}
	return err
}

// coordinated returns the error of a claim or an epoch of another coordinator.
func coordinated(e jetstream.KeyValueEntry) error {
	_, name, _ := strings.Cut(string(e.Value()), " ")
	return fmt.Errorf("%w: %s; stop it, or give this one its own members.fleet", ErrCoordinated, name)
}

// keep renews the claim until ctx ends. The error is [ErrCoordinated].
func (c *claim) keep(ctx context.Context) error {
	for pause(ctx, renewEvery) {
		if err := c.renew(ctx); errors.Is(err, ErrCoordinated) {
			return err
		}
	}
	return nil
}

// renew renews the claim, or takes it if it is free. The error is [ErrCoordinated] if another
// coordinator holds it, or the server's.
func (c *claim) renew(ctx context.Context) error {
	ctx, cancel := c.bus.withTimeout(ctx, leaseSpan/2)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := time.Now()
	revision, err := c.bus.leases.Update(ctx, coordinatorKey, []byte(c.value), c.revision) // 0: there is none
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		if err := c.checkEpoch(ctx); err != nil {
			return err
		}
		e, gone := c.bus.leases.Get(ctx, coordinatorKey)
		switch {
		case errors.Is(gone, jetstream.ErrKeyNotFound):
			revision, err = c.bus.leases.Create(ctx, coordinatorKey, []byte(c.value))
		case gone != nil:
			return gone
		case !strings.HasPrefix(string(e.Value()), c.owner+" "):
			return coordinated(e)
		default:
			revision, err = c.bus.leases.Update(ctx, coordinatorKey, []byte(c.value), e.Revision())
		}
	}
	if err != nil {
		return err
	}
	c.revision = revision
	c.until.Store(int64(sent.Sub(c.base) + leaseSpan - leaseMargin))
	return nil
}

// release gives up the claim.
func (c *claim) release() {
	if !c.holds() {
		return
	}
	c.until.Store(0)
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	_ = c.bus.leases.Delete(ctx, coordinatorKey)
}
