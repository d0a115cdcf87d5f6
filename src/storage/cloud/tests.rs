//! Object stores without a server, also such as lose answers.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult, UploadPart,
};

use super::connect::Connection;
use super::*;
use crate::storage::{Error, Storage, contract};

fn over(store: Arc<dyn ObjectStore>) -> Storage {
    Storage::over(Cloud::over(store, "t/x"), "s3a://bucket/t/x")
}

#[tokio::test]
async fn an_object_store_holds_the_contract() {
    let store = Arc::new(InMemory::new());
    store.put(&Path::from("t/xx/neighbour"), "1".into()).await.expect("put");
    contract::holds(&over(store.clone())).await;
    let left: Vec<_> = store.list(None).map_ok(|meta| meta.location.to_string()).try_collect().await.expect("listed");
    assert_eq!(left, ["t/xx/neighbour"]);
    contract::holds(&Storage::over(Cloud::over(Arc::new(InMemory::new()), ""), "s3a://bucket")).await;
}

/// By hand, against any store: the location in `HUDI_STREAMER_TEST_LOCATION`, credentials in the environment as ever. It
/// is emptied.
#[tokio::test]
#[ignore = "needs a store"]
async fn a_real_store_holds_the_contract() {
    let location = std::env::var("HUDI_STREAMER_TEST_LOCATION").expect("HUDI_STREAMER_TEST_LOCATION");
    let storage = Storage::open(&location).expect("opened");
    storage.delete_folder("").await.expect("emptied");
    contract::holds(&storage).await;
    versions_are_told(&storage).await;
}

#[tokio::test]
async fn versions_tell_who_came_first() {
    versions_are_told(&Storage::in_memory()).await;
}

async fn versions_are_told(storage: &Storage) {
    assert_eq!(storage.get_versioned("lock").await.expect("read"), None);
    let first = storage.create_versioned("lock", "1".into()).await.expect("created");
    let (bytes, read) = storage.get_versioned("lock").await.expect("read").expect("there");
    assert_eq!((bytes, &read), (Bytes::from("1"), &first));
    let second = storage.replace_if("lock", "2".into(), &first).await.expect("replaced");
    let error = storage.replace_if("lock", "3".into(), &first).await.expect_err("it is the second by now");
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    storage.replace_if("lock", "3".into(), &second).await.expect("replaced");
    storage.delete("lock").await.expect("deleted");
    let error = storage.replace_if("lock", "4".into(), &second).await.expect_err("it is gone");
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
}

/// What goes wrong with the next puts, or ends of uploads, or copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Done, and no answer.
    Answer,
    /// Done, no answer, and the repetition that the client makes by itself is refused: there is the object.
    Repeated,
    /// Not even done.
    Request,
}

#[derive(Debug)]
struct Lossy {
    store: InMemory,
    loss: Loss,
    left: Arc<AtomicUsize>,
}

impl Lossy {
    fn new(loss: Loss, times: usize) -> Arc<Lossy> {
        Arc::new(Lossy { store: InMemory::new(), loss, left: Arc::new(AtomicUsize::new(times)) })
    }

    fn strikes(&self) -> bool {
        self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
    }
}

fn no_answer() -> StoreError {
    let source = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    StoreError::Generic { store: "lossy", source: source.into() }
}

fn refused(mode: &PutMode) -> StoreError {
    let (path, source) = (String::new(), "412".into());
    match mode {
        PutMode::Create => StoreError::AlreadyExists { path, source },
        _ => StoreError::Precondition { path, source },
    }
}

impl fmt::Display for Lossy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lossy")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Lossy {
    async fn put_opts(&self, path: &Path, bytes: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        if !self.strikes() {
            return self.store.put_opts(path, bytes, options).await;
        }
        let mode = options.mode.clone();
        match self.loss {
            Loss::Request => Err(no_answer()),
            Loss::Answer => self.store.put_opts(path, bytes, options).await.and(Err(no_answer())),
            Loss::Repeated => self.store.put_opts(path, bytes, options).await.and(Err(refused(&mode))),
        }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        let upload = self.store.put_multipart_opts(path, options).await?;
        Ok(Box::new(LossyUpload { upload, loss: self.loss, left: self.left.clone() }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.store.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        self.store.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        if !self.strikes() {
            return self.store.copy_opts(from, to, options).await;
        }
        match self.loss {
            Loss::Request => Err(no_answer()),
            Loss::Answer => self.store.copy_opts(from, to, options).await.and(Err(no_answer())),
            Loss::Repeated => self.store.copy_opts(from, to, options).await.and(Err(refused(&PutMode::Create))),
        }
    }
}

#[derive(Debug)]
struct LossyUpload {
    upload: Box<dyn MultipartUpload>,
    loss: Loss,
    left: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl MultipartUpload for LossyUpload {
    fn put_part(&mut self, bytes: PutPayload) -> UploadPart {
        self.upload.put_part(bytes)
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        let strikes = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
        if !strikes {
            return self.upload.complete().await;
        }
        match self.loss {
            Loss::Request => Err(no_answer()),
            Loss::Answer => self.upload.complete().await.and(Err(no_answer())),
            // The parts are gone with the first request.
            Loss::Repeated => {
                let (path, source) = (String::new(), "NoSuchUpload".into());
                self.upload.complete().await.and(Err(StoreError::NotFound { path, source }))
            }
        }
    }

    async fn abort(&mut self) -> StoreResult<()> {
        self.upload.abort().await
    }
}

const LOSSES: [Loss; 3] = [Loss::Answer, Loss::Repeated, Loss::Request];

#[tokio::test]
async fn a_success_without_an_answer_is_a_success() {
    for loss in LOSSES {
        for times in 1..=3 {
            let storage = over(Lossy::new(loss, times));
            storage.create("c", "mine".into()).await.unwrap_or_else(|e| panic!("{loss:?} {times}: {e}"));
            assert_eq!(storage.get("c").await.expect("read"), "mine");

            let store = Lossy::new(loss, 0);
            let storage = over(store.clone());
            let version = storage.create_versioned("v", "1".into()).await.expect("created");
            store.left.store(times, Ordering::SeqCst);
            let version = storage.replace_if("v", "2".into(), &version).await;
            let version = version.unwrap_or_else(|e| panic!("{loss:?} {times}: {e}"));
            store.left.store(0, Ordering::SeqCst);
            storage.replace_if("v", "3".into(), &version).await.expect("the version is the one that was made");
        }
    }
}

#[tokio::test]
async fn anothers_success_is_never_taken_for_ones_own() {
    for loss in LOSSES {
        let store = Lossy::new(loss, 0);
        let storage = over(store.clone());
        // The same bytes: only the mark tells them apart.
        let version = storage.create_versioned("c", "same".into()).await.expect("created");
        store.left.store(usize::from(loss != Loss::Repeated), Ordering::SeqCst);
        let error = storage.create("c", "same".into()).await.expect_err("it is there");
        assert!(matches!(error, Error::AlreadyExists { .. }), "{loss:?}: {error}");
        store.left.store(0, Ordering::SeqCst);
        storage.replace_if("c", "same".into(), &version).await.expect("replaced");
        store.left.store(usize::from(loss != Loss::Repeated), Ordering::SeqCst);
        let error = storage.replace_if("c", "same".into(), &version).await.expect_err("it is another by now");
        assert!(matches!(error, Error::Conflict { .. }), "{loss:?}: {error}");
    }
}

#[tokio::test]
async fn a_store_that_never_answers_is_given_up() {
    let error = over(Lossy::new(Loss::Request, usize::MAX)).create("c", "x".into()).await.expect_err("no answer");
    assert!(error.is_retryable(), "{error}");
}

#[tokio::test]
async fn large_files_come_to_be_once_whatever_answers_are_lost() {
    let large = Bytes::from(vec![3; 9 << 20]);
    for loss in LOSSES {
        for times in 0..=2 {
            let (storage, bytes) = (over(Lossy::new(loss, times)), large.clone());
            let written = storage.clone();
            let done = tokio::task::spawn_blocking(move || {
                let mut upload = written.upload("f").expect("begun");
                upload.write_all(&bytes).expect("written");
                let finished = upload.finish();
                let mut draft = written.draft(".l.1").expect("begun");
                draft.write_all(&bytes).expect("written");
                (finished, draft.publish(".l.1"))
            });
            let (finished, published) = done.await.expect("worked");
            finished.unwrap_or_else(|e| panic!("{loss:?} {times}: {e}"));
            // A copy that was asked for once and not done is the caller's to try again.
            if loss != Loss::Request || times == 0 {
                published.unwrap_or_else(|e| panic!("{loss:?} {times}: {e}"));
                assert!(storage.get(".l.1").await.expect("read") == large);
            }
            assert!(storage.get("f").await.expect("read") == large);
        }
    }
}

#[tokio::test]
async fn what_killed_uploads_left_is_discarded_with_their_target() {
    let storage = over(Arc::new(InMemory::new()));
    for name in [".f.1", "f.1#17", "f.10#17", "f.1#x"] {
        storage.put(&format!("p/{name}"), "1".into()).await.expect("put");
    }
    storage.discard_uploads("p/.f.1").await.expect("discarded");
    for (name, is_left) in [(".f.1", true), ("f.1#17", false), ("f.10#17", true), ("f.1#x", true)] {
        assert_eq!(storage.size(&format!("p/{name}")).await.expect("looked").is_some(), is_left, "{name}");
    }
}

#[tokio::test]
async fn marks_of_folders_are_no_files() {
    let store = Arc::new(InMemory::new());
    for key in ["t/x/a_$folder$", "t/x/a", "t/x/.f.crc"] {
        store.put(&Path::parse(key).expect("a key"), Bytes::new().into()).await.expect("put");
    }
    store.put(&Path::from("t/x/a/1"), "1".into()).await.expect("put");
    let storage = over(store);
    // As `a/` is told: an empty object of the folder's own name.
    assert_eq!(contract::paths(&storage.list("a").await.expect("listed").files), ["a/1"]);
    let all = storage.list_recursive("", &|_| true).await.expect("listed");
    assert_eq!(contract::paths(&all), ["a", "a/1"]);
}

/// Takes conditions and does not heed them, as some servers do.
#[tokio::test]
async fn a_store_that_does_not_heed_conditions_is_found_out() {
    let store = Arc::new(Heedless(InMemory::new()));
    let cloud = Cloud { connection: Arc::new(Connection::new(store, false)), prefix: String::new() };
    let storage = Storage::over(cloud, "s3a://bucket");
    let error = storage.create("c", "x".into()).await.expect_err("it would replace");
    assert!(error.to_string().contains("does not heed If-None-Match"), "{error}");

    let connection = Arc::new(Connection::new(Arc::new(InMemory::new()), false));
    let storage = Storage::over(Cloud { connection, prefix: String::new() }, "s3a://bucket");
    storage.create("c", "x".into()).await.expect("created");
    storage.create("d", "x".into()).await.expect("created");
}

#[derive(Debug)]
struct Heedless(InMemory);

impl fmt::Display for Heedless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("heedless")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Heedless {
    async fn put_opts(&self, path: &Path, bytes: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        self.0.put_opts(path, bytes, PutOptions { mode: PutMode::Overwrite, ..options }).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.0.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        self.0.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.0.copy_opts(from, to, options).await
    }
}
