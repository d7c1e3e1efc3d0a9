package members

import (
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

// ErrCoordinated says that another load generator has the members of this fleet.
var ErrCoordinated = errors.New("another load generator coordinates these members")

const coordinatorKey = "coordinator"

// claim is a coordinator's lease of its fleet: two of them would give numbers twice. A coordinator
// that cannot renew it writes nothing from then on, by its own monotonic clock. Whoever takes it
// writes an epoch of his own: one that was deaf meanwhile, and finds the claim nobody's again, sees
// by that whether there was another one, who gave numbers that he does not know.
type claim struct {
	bus          *bus
	owner, value string
	epoch        string // of this process, with its name: who took the claim after it wrote another one

	mu       sync.Mutex // held while it is renewed
	revision uint64     // of the key, as it was written last
	taken    bool       // the epoch is written

	base  time.Time    // with the monotonic clock
	until atomic.Int64 // since base
}

// newClaim makes one that holds nothing.
func newClaim(b *bus, o Options) *claim {
	owner := o.Owner
	if owner == "" {
		owner = nuid.Next()
	}
	return &claim{bus: b, owner: owner, value: owner + " " + o.Name, epoch: nuid.Next() + " " + o.Name, base: time.Now()}
}

// holds says whether the coordinator may write anything. Unlike a member's lease it can hold again:
// who was deaf, and finds the claim his own or nobody's, goes on.
func (c *claim) holds() bool { return int64(time.Since(c.base)) < c.until.Load() }

// take waits for the lease of a coordinator that was killed to end, and no longer. One of the same
// owner is known to be gone.
func (c *claim) take(ctx context.Context) error {
	for deadline := time.Now().Add(leaseSpan + time.Second); ; {
		holder, err := c.renew(ctx)
		switch {
		case err != nil && time.Now().After(deadline):
			return err
		case err == nil && holder == "":
			return c.begin(ctx)
		case err == nil && time.Now().After(deadline):
			return c.refusal(holder)
		}
		if !pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// epochKey is among the orders, since those stay when a claim runs out.
const epochKey = "epoch"

// begin writes the epoch.
func (c *claim) begin(ctx context.Context) error {
	ctx, cancel := c.bus.within(ctx, leaseSpan/2)
	defer cancel()
	if _, err := c.bus.orders.PutString(ctx, epochKey, c.epoch); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = true
	return nil
}

// another says who holds it by now where another one took it since this one did.
func (c *claim) another(ctx context.Context) (holder string, err error) {
	if !c.taken {
		return "", nil
	}
	e, err := c.bus.orders.Get(ctx, epochKey)
	if err == nil && string(e.Value()) != c.epoch {
		holder = string(e.Value())
	}
	return holder, err
}

func (c *claim) refusal(holder string) error {
	_, name, _ := strings.Cut(holder, " ")
	return fmt.Errorf("%w: %s; stop it, or give this one its own members.fleet", ErrCoordinated, name)
}

// keep renews it until ctx ends. The error is [ErrCoordinated].
func (c *claim) keep(ctx context.Context) error {
	for pause(ctx, renewEvery) {
		if holder, err := c.renew(ctx); err == nil && holder != "" {
			return c.refusal(holder)
		}
	}
	return nil
}

// renew renews the claim, or takes it where nobody has it. Where another one has it, it says who.
func (c *claim) renew(ctx context.Context) (holder string, err error) {
	ctx, cancel := c.bus.within(ctx, leaseSpan/2)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := time.Now()
	revision, err := c.bus.leases.Update(ctx, coordinatorKey, []byte(c.value), c.revision) // 0: there is none
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		if holder, err := c.another(ctx); err != nil || holder != "" {
			return holder, err
		}
		e, gone := c.bus.leases.Get(ctx, coordinatorKey)
		switch {
		case errors.Is(gone, jetstream.ErrKeyNotFound):
			revision, err = c.bus.leases.Create(ctx, coordinatorKey, []byte(c.value))
		case gone != nil:
			return "", gone
		case !strings.HasPrefix(string(e.Value()), c.owner+" "):
			return string(e.Value()), nil
		default:
			revision, err = c.bus.leases.Update(ctx, coordinatorKey, []byte(c.value), e.Revision())
		}
	}
	if err != nil {
		return "", err
	}
	c.revision = revision
	c.until.Store(int64(sent.Sub(c.base) + leaseSpan - leaseMargin))
	return "", nil
}

// release gives it up.
func (c *claim) release() {
	if !c.holds() {
		return
	}
	c.until.Store(0)
	ctx, cancel := context.WithTimeout(context.Background(), askFor)
	defer cancel()
	_ = c.bus.leases.Delete(ctx, coordinatorKey)
}
