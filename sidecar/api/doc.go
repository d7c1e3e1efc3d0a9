// Package api defines the interface between the sidecar and its clients: the types of every call, the OpenAPI document
// that describes them, and a client. It imports only the standard library and gorilla/websocket, because the Grafana
// backend imports it.
//
// Units: times of day are RFC 3339; durations and latencies are float64 seconds; ratios are 0 to 1; token counts are
// whole tokens. A nil pointer means "not known". Screens show it as a dash and never as zero. 64-bit identifiers are
// strings in JSON.
package api
