//! The HTTP client of the object store: hyper over rustls with `ring` and the machine's root certificates, as everywhere else in Mailyard.
//! The one that comes with the crate would bring another TLS library and certificates of its own.

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
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
}

impl Connector for Http {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        if !self.has_tls {
            return Ok(HttpClient::new(Service(Client::builder(TokioExecutor::new()).build(HttpConnector::new()))));
        }
        let failed = |error| object_store::Error::Generic { store: "S3", source: Box::new(error) };
        let connector: HttpsConnector<HttpConnector> =
            HttpsConnectorBuilder::new().with_native_roots().map_err(failed)?.https_only().enable_http1().build();
        Ok(HttpClient::new(Service(Client::builder(TokioExecutor::new()).build(connector))))
    }
}

#[derive(Debug)]
struct Service<C>(Client<C, HttpRequestBody>);

fn kind(error: &Error) -> HttpErrorKind {
    if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Interrupted }
}

#[async_trait]
impl<C: Connect + Clone + std::fmt::Debug + Send + Sync + 'static> HttpService for Service<C> {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.request(request).await.map_err(|error| HttpError::new(kind(&error), error))?;
        let (parts, body) = response.into_parts();
        let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}
