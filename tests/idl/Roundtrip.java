// Decodes each case with the classes that Apache's compiler makes of the IDL, and encodes it again. Cases and answers are those
// of tests/cpp/cases.h.
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.apache.thrift.TBase;
import org.apache.thrift.TDeserializer;
import org.apache.thrift.TSerializer;
import org.apache.thrift.protocol.TCompactProtocol;

public final class Roundtrip {
  private static byte[] take(InputStream in) throws Exception {
    byte[] size = in.readNBytes(4);
    if (size.length < 4) return null;
    return in.readNBytes(ByteBuffer.wrap(size).order(ByteOrder.LITTLE_ENDIAN).getInt());
  }

  private static void put(OutputStream out, char status, byte[] text) throws Exception {
    out.write(status);
    out.write(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(text.length).array());
    out.write(text);
  }

  private static byte[] again(String name, byte[] data) throws Exception {
    TBase<?, ?> object = (TBase<?, ?>) Class.forName("pt2wire.idl." + name).getDeclaredConstructor().newInstance();
    new TDeserializer(new TCompactProtocol.Factory()).deserialize(object, data);
    return new TSerializer(new TCompactProtocol.Factory()).serialize(object);
  }

  public static void main(String[] arguments) throws Exception {
    InputStream in = new BufferedInputStream(System.in);
    OutputStream out = new BufferedOutputStream(System.out);
    for (byte[] name = take(in); name != null; name = take(in)) {
      byte[] data = take(in);
      try {
        put(out, '=', again(new String(name, StandardCharsets.UTF_8), data));
      } catch (Exception error) {
        put(out, '!', String.valueOf(error).getBytes(StandardCharsets.UTF_8));
      }
    }
    out.flush();
  }
}
