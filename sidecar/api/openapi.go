package api

import _ "embed" // for the document

// Prefix is what the path of every call begins with.
const Prefix = "/api/v1"

// UserHeader names the login on whose behalf a call is made. The server believes
// it from those who hold the token, or where none is configured.
const UserHeader = "X-Grafana-User"

// OpenAPI is the OpenAPI 3.1 document of the sidecar's HTTP interface. A test of the server makes it of the routes,
// of the types of this package with their tags, and of their comments, which speak of fields by their names in JSON.
//
//go:embed openapi.yaml
var OpenAPI []byte
