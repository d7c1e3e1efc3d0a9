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

// Bucket is one of an S3-compatible service.
type Bucket struct {
	Endpoint  string // http:// or https:// with a host, without a path
	Name      string
	Prefix    string // only what begins with it is read
	Region    string // empty: the service is asked, or needs none
	PathStyle bool   // the bucket stands in the path, not in front of the host
	AccessKey string // empty: anonymous
	SecretKey string
	CA        []byte // PEM; empty: the system's
}

const fetches = 8 // documents that are fetched at once

// bucket is a place in a bucket. It is used by one goroutine at a time.
type bucket struct {
	opts      Bucket
	client    *minio.Client
	transport *http.Transport
	seen      [sha256.Size]byte // of the listing at the last reading
}

// newBucket makes the client; nothing is asked yet. The error is an [api.FieldError].
func newBucket(o Bucket) (*bucket, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil, bad("corpus.s3.endpoint", o.Endpoint, "http:// or https:// with a host and an optional port")
	}
	if (o.AccessKey == "") != (o.SecretKey == "") {
		return nil, bad("corpus.s3.access_key", "one key", "both access_key and secret_key, or neither for an anonymous reader")
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

// documents lists the bucket, and fetches what is there where the listing differs
// from that of the last reading.
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
	if !refused.Load() { // else it is worth another try
		b.seen = listing
	}
	return all, nil
}

// list gives the documents without their data, and a hash of the listing.
func (b *bucket) list(ctx context.Context) (all []document, listing [sha256.Size]byte, err error) {
	hash, limit := sha256.New(), &budget{}
	ctx, cancel := context.WithCancel(ctx) // ends the listing where it is left early
	defer cancel()
	options := minio.ListObjectsOptions{Prefix: b.opts.Prefix, Recursive: true}
	for object := range b.client.ListObjectsIter(ctx, b.opts.Name, options) {
		if object.Err != nil {
			return nil, listing, b.explain(object.Err)
		}
		name := object.Key[strings.LastIndex(b.opts.Prefix, "/")+1:]
		if name == "" || strings.HasSuffix(name, "/") { // a folder, as consoles make them
			continue
		}
		if len(all) == 2*maxDocuments {
			break // the rest is neither read nor named
		}
		fmt.Fprintf(hash, "%q%q%d", object.Key, object.ETag, object.Size)
		all = append(all, document{name: name, key: object.Key, problem: limit.refuse(object.Size)})
	}
	return all, [sha256.Size]byte(hash.Sum(nil)), ctx.Err()
}

// fetch reads one document. What the service refuses spoils no other.
func (b *bucket) fetch(ctx context.Context, d *document) error {
	object, err := b.client.GetObject(ctx, b.opts.Name, d.key, minio.GetObjectOptions{})
	if err == nil {
		defer object.Close()
		d.data, err = io.ReadAll(io.LimitReader(object, maxDocument))
	}
	if err == nil {
		return nil
	}
	if said := minio.ToErrorResponse(err); said.StatusCode >= 400 && said.StatusCode < 500 && said.StatusCode != http.StatusTooManyRequests {
		d.problem = "reading it from the bucket failed: " + said.Code
		return nil
	}
	return b.explain(err)
}

// explain says what went wrong and what to do about it.
func (b *bucket) explain(err error) error {
	said := minio.ToErrorResponse(err)
	var transport *url.Error
	switch {
	case said.Code == "NoSuchBucket":
		return fmt.Errorf("no such bucket: %q; check corpus.s3.bucket", b.opts.Name)
	case said.Code == "AccessDenied" && b.opts.AccessKey == "":
		return errors.New("the bucket is not public (AccessDenied); set LOADGEN_CORPUS_S3_ACCESS_KEY and LOADGEN_CORPUS_S3_SECRET_KEY")
	case said.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the service rejects the keys (%s)", said.Code)
	case errors.As(err, &transport):
		return fmt.Errorf("%s does not answer: %w; check corpus.s3.endpoint", b.opts.Endpoint, transport.Err)
	}
	return err
}
