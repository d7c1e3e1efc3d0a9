// Package api holds what the sidecar and its clients say to each other: the
// types of every call, the OpenAPI document that describes them, and a small
// client. It imports the standard library and gorilla/websocket alone, because
// the Grafana backend imports it too.
//
// Units: times of day are RFC 3339; durations and latencies are float64
// seconds; ratios are 0 to 1; token counts are whole tokens. A pointer that is
// nil means "not known", which a screen shows as a dash and never as zero.
// Identifiers that a server hands out as 64-bit numbers are strings in JSON.
package api
