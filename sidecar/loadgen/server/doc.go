// Package server is the sidecar's HTTP interface: the REST calls, the stream of
// snapshots, health, metrics, and the page. It holds no state of the product;
// what the calls do is the [Backend]'s.
//
// Who gets in: a request's Host has to be a name that the server knows, so that
// a rebound DNS name is refused; its Origin, where there is one, the server's
// own, so that a page of another site is refused, on WebSockets too; and where a
// token is configured, every call but health, metrics and, if configured, the
// reads of a public page needs it, in a header or exchanged for a cookie. Metrics
// may have a token of their own.
//
// A route has the types of its query, body and answer. Handlers get them read and
// held against the limits that their tags declare, and a test makes the OpenAPI
// document of them. Bodies and queries are not read by huma (tried with v2.37): it
// lets through an unknown, a doubled and an unreadable parameter, names one end of
// a range ("expected number >= 1") where ours name the range, does not say which
// fields there are, and adds 1 MB to the program.
package server
