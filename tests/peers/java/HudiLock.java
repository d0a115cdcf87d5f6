import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

/** One of Hudi's own lock providers: HudiLock CLASS key=value...; then a command a line, an answer a line. */
public class HudiLock {
  public static void main(String[] args) throws Exception {
    TypedProperties properties = new TypedProperties();
    for (int i = 1; i < args.length; i++) {
      String[] parts = args[i].split("=", 2);
      properties.setProperty(parts[0], parts[1]);
    }
    StorageConfiguration<?> storage = new HadoopStorageConfiguration(new Configuration());
    LockProvider<?> provider = (LockProvider<?>) Class.forName("org.apache.hudi.client.transaction.lock." + args[0])
        .getConstructor(LockConfiguration.class, StorageConfiguration.class)
        .newInstance(new LockConfiguration(properties), storage);
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      System.out.println(answer(provider, line.trim().split(" ")));
      System.out.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private static String answer(LockProvider<?> provider, String[] words) {
    try {
      switch (words[0]) {
        case "lock":
          return provider.tryLock(Long.parseLong(words[1]), TimeUnit.MILLISECONDS) ? "locked" : "busy";
        case "unlock":
          provider.unlock();
          return "unlocked";
        case "close":
          provider.close();
          return "closed";
        default:
          return "unknown";
      }
    } catch (Exception e) {
      return "error " + e;
    }
  }
}
