// Package server is the sidecar's HTTP interface: the REST calls, the stream of snapshots, health, metrics, and the
// page. It holds no state of the product. The [Backend] implements the calls.
//
// Access: a request's Host must be a name that the server knows, so that a rebound DNS name is refused. Its Origin,
// where there is one, must be the server's own, so that a page of another site is refused, on WebSockets too. Where a
// token is configured, every call requires it, in a header or exchanged for a cookie, except for health, metrics and,
// if configured, the reads of a public page. Metrics may have a token of their own.
//
// A route has the types of its query, body and answer. Handlers receive them parsed and checked against the limits in
// their tags, and a test generates the OpenAPI document from them. Bodies and queries are not read by huma (tried with
// v2.37): it accepts unknown, repeated and unreadable parameters, names one end of a range ("expected number >= 1")
// where ours name the range, does not list the allowed fields, and adds 1 MB to the program.
package server
