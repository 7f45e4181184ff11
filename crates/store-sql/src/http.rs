//! The HTTP client of the object store: hyper over rustls with `ring` and the machine's root certificates, as everywhere else in Mailyard.
//! The one that comes with the crate would bring another TLS library and certificates of its own.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector as Connector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};

/// Makes clients for addresses that begin with `https`, or with `http` only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Http {
    pub(crate) has_tls: bool,
    /// How long an answer may take until its first octet.
    pub(crate) timeout: Duration,
}

impl Connector for Http {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(self.timeout));
        if !self.has_tls {
            return Ok(self.client(tcp));
        }
        tcp.enforce_http(false);
        let failed = |error| object_store::Error::Generic { store: "S3", source: Box::new(error) };
        let tls = HttpsConnectorBuilder::new().with_native_roots().map_err(failed)?.https_only().enable_http1();
        Ok(self.client(tls.wrap_connector(tcp)))
    }
}

impl Http {
    fn client<C: Connect + Clone + Send + Sync + 'static>(&self, connector: C) -> HttpClient {
        HttpClient::new(Service {
            client: Client::builder(TokioExecutor::new()).build(connector),
            timeout: self.timeout,
        })
    }
}

struct Service<C> {
    client: Client<C, HttpRequestBody>,
    timeout: Duration,
}

impl<C> fmt::Debug for Service<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Service")
    }
}

fn kind(error: &Error) -> HttpErrorKind {
    if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Interrupted }
}

#[async_trait]
impl<C: Connect + Clone + Send + Sync + 'static> HttpService for Service<C> {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = tokio::time::timeout(self.timeout, self.client.request(request)).await;
        let response = response.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?;
        let (parts, body) = response.map_err(|error| HttpError::new(kind(&error), error))?.into_parts();
        let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}
