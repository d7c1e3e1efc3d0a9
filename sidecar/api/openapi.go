package api

import _ "embed" // for the document

// Prefix is the beginning of the path of every call.
const Prefix = "/api/v1"

// UserHeader is the header with the login that events record for a call. The server accepts it from a caller with the
// token, or from any caller if no token is configured.
const UserHeader = "X-Grafana-User"

// OpenAPI is the OpenAPI 3.1 document of the sidecar's HTTP interface. A test of the server generates it from the
// routes and from the types of this package, with their tags and comments. These comments therefore use the names in
// JSON.
//
//go:embed openapi.yaml
var OpenAPI []byte
