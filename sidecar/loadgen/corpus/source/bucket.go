package source

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
)

// Bucket is a bucket of an S3-compatible service.
type Bucket struct {
	Endpoint  string // http:// or https:// with a host, without a path
	Name      string
	Prefix    string // only objects with this prefix are read
	Region    string // empty: requested from the service, or not needed
	PathStyle bool   // the bucket is in the path instead of the host name
	AccessKey string // empty: anonymous
	SecretKey string
	CA        []byte // PEM; empty: the system's certificates
}

const fetches = 8 // documents fetched concurrently

// bucket is a place in a bucket. It is not safe for concurrent use.
type bucket struct {
	opts      Bucket
	client    *minio.Client
	transport *http.Transport
	seen      [sha256.Size]byte // hash of the listing at the last reading
}

// newBucket makes the client without calling the service. The error is an [api.FieldError].
func newBucket(o Bucket) (*bucket, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil, bad("corpus.s3.endpoint", o.Endpoint, "http:// or https:// with a host and an optional port")
	}
	if (o.AccessKey == "") != (o.SecretKey == "") {
		return nil, bad("corpus.s3.access_key", "one key",
			"both access_key and secret_key, or neither for an anonymous reader")
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: 15 * time.Second,
		MaxIdleConnsPerHost: fetches, IdleConnTimeout: 4 * time.Second, DisableCompression: true,
	}
	if len(o.CA) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, bad("corpus.s3.ca_file", "its content", "PEM certificates")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	options := &minio.Options{
		Creds: credentials.NewStaticV4(o.AccessKey, o.SecretKey, ""), Secure: u.Scheme == "https", Region: o.Region,
		Transport: transport, MaxRetries: 3, BucketLookup: minio.BucketLookupDNS,
	}
	if o.PathStyle {
		options.BucketLookup = minio.BucketLookupPath
	}
	client, err := minio.New(u.Host, options)
	if err != nil {
		return nil, bad("corpus.s3.endpoint", o.Endpoint, "the address of an S3-compatible service; "+err.Error())
	}
	return &bucket{opts: o, client: client, transport: transport}, nil
}

func bad(field, value, allowed string) error {
	return &api.FieldError{Field: field, Value: fmt.Sprintf("%q", value), Allowed: allowed}
}

func (b *bucket) name() string { return "s3://" + b.opts.Name + "/" + b.opts.Prefix }

// documents lists the bucket, and fetches the documents if the listing has changed since the
// last reading.
func (b *bucket) documents(ctx context.Context) ([]document, error) {
	defer b.transport.CloseIdleConnections()
	all, listing, err := b.list(ctx)
	if err != nil {
		return nil, err
	}
	if listing == b.seen {
		return nil, errUnchanged
	}
	var refused atomic.Bool
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetches)
	for i := range all {
		if d := &all[i]; d.problem == "" {
			group.Go(func() error {
				err := b.fetch(ctx, d)
				if d.problem != "" {
					refused.Store(true)
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if !refused.Load() { // after a refusal the next reading retries
		b.seen = listing
	}
	return all, nil
}

// list returns the documents without their data, and a hash of the listing.
func (b *bucket) list(ctx context.Context) (all []document, listing [sha256.Size]byte, err error) {
	hash, limit := sha256.New(), &budget{}
	ctx, cancel := context.WithCancel(ctx) // ends a listing that is abandoned
	defer cancel()
	options := minio.ListObjectsOptions{Prefix: b.opts.Prefix, Recursive: true}
	for object := range b.client.ListObjectsIter(ctx, b.opts.Name, options) {
		if object.Err != nil {
			return nil, listing, b.explain(object.Err)
		}
		name := object.Key[strings.LastIndex(b.opts.Prefix, "/")+1:]
		if name == "" || strings.HasSuffix(name, "/") { // a folder made by a console
			continue
		}
		if len(all) == 2*maxDocuments {
			break // further objects are neither read nor named
		}
		fmt.Fprintf(hash, "%q%q%d", object.Key, object.ETag, object.Size)
		all = append(all, document{name: name, key: object.Key, problem: limit.refuse(object.Size)})
	}
	return all, [sha256.Size]byte(hash.Sum(nil)), ctx.Err()
}

// fetch reads one document. A refusal of the service is the document's problem.
func (b *bucket) fetch(ctx context.Context, d *document) error {
	object, err := b.client.GetObject(ctx, b.opts.Name, d.key, minio.GetObjectOptions{})
	if err == nil {
		defer object.Close()
		d.data, err = io.ReadAll(io.LimitReader(object, maxDocument))
	}
	if err == nil {
		return nil
	}
	answer := minio.ToErrorResponse(err)
	clientError := answer.StatusCode >= 400 && answer.StatusCode < 500
	if clientError && answer.StatusCode != http.StatusTooManyRequests {
		d.problem = "reading it from the bucket failed: " + answer.Code
		return nil
	}
	return b.explain(err)
}

// explain adds the remedy to an error.
func (b *bucket) explain(err error) error {
	answer := minio.ToErrorResponse(err)
	var transport *url.Error
	switch {
	case answer.Code == "NoSuchBucket":
		return fmt.Errorf("no such bucket: %q; check corpus.s3.bucket", b.opts.Name)
	case answer.Code == "AccessDenied" && b.opts.AccessKey == "":
		return errors.New("the bucket is not public (AccessDenied); set LOADGEN_CORPUS_S3_ACCESS_KEY and " +
			"LOADGEN_CORPUS_S3_SECRET_KEY")
	case answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the service rejects the keys (%s)", answer.Code)
	case errors.As(err, &transport):
		return fmt.Errorf("%s does not answer: %w; check corpus.s3.endpoint", b.opts.Endpoint, transport.Err)
	}
	return err
}
