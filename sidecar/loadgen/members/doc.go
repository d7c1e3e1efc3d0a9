// Package members lets other processes send the turns of a load generator.
//
// The load generator, their coordinator, holds the conversations as it does alone. It hands each turn to a member, a
// process that sends it and reports what comes back. Between them is a NATS server, which stores nothing: a turn is
// handed over until its member has it, and a result until the coordinator has it, each under the turn's id, so that
// nothing is sent or counted twice.
//
// Once a second the coordinator calls its members, and each of them answers. One that is silent for 3 s is lost, and
// its turns with it: they end as cancelled, in the class [kvbooth/sidecar/api.ErrorMember], and are in no figure of the
// target. A member that no coordinator has called for 5 s cancels its turns. While the server is away, no member is
// lost: turns in flight go on, and results wait for up to a minute.
//
// Times are offsets on the member's monotonic clock. The coordinator only places them, by the fastest of the member's
// messages, so that neither the way to a member nor its clock is in any figure.
package members
