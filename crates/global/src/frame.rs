//! Messages on a stream: four bytes of length, then the message.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Reads one message. `None`: the stream ended between two.
///
/// # Errors
/// It ended within one, broke, or one is longer than `bytes_max`.
pub(crate) async fn read(
    io: &mut (impl AsyncRead + Unpin),
    bytes_max: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match io.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > bytes_max {
        let text = format!("a message of {length} bytes, at most {bytes_max}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut message = vec![0; length];
    io.read_exact(&mut message).await?;
    Ok(Some(message))
}

/// Writes one message.
pub(crate) async fn write(io: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    let mut framed = Vec::with_capacity(4 + message.len());
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(message);
    io.write_all(&framed).await?;
    io.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_come_out_as_they_went_in() {
        let (mut here, mut there) = tokio::io::duplex(64);
        let writing = async {
            write(&mut here, b"one").await.unwrap();
            write(&mut here, b"").await.unwrap();
            drop(here);
        };
        let reading = async {
            assert_eq!(read(&mut there, 10).await.unwrap().unwrap(), b"one");
            assert_eq!(read(&mut there, 10).await.unwrap().unwrap(), b"");
            assert_eq!(read(&mut there, 10).await.unwrap(), None);
        };
        tokio::join!(writing, reading);
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_not_read() {
        let mut bytes: &[u8] = &[0xff, 0xff, 0xff, 0xff, 1];
        assert!(read(&mut bytes, 1000).await.is_err());
        let mut cut: &[u8] = &[0, 0, 0, 5, 1];
        assert!(read(&mut cut, 1000).await.is_err());
    }
}
