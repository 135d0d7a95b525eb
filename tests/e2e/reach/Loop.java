/* Answers each line with sums that it computes by recursion, with a map, garbage, and an exception; the same each time. */
public class Loop {
	static long fib(int n) {
		return n < 2 ? n : fib(n - 1) + fib(n - 2);
	}

	public static void main(String[] args) throws Exception {
		System.out.println("ready");
		java.io.BufferedReader in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
		String line;
		while ((line = in.readLine()) != null) {
			java.util.Map<String, Long> map = new java.util.TreeMap<>();
			long sum = 0;
			for (int i = 0; i < 18; i++)
				sum += fib(i);
			for (int i = 0; i < 2000; i++)
				map.put("k" + i % 37, sum + i);
			byte[][] waste = new byte[200][];
			for (int i = 0; i < 200; i++)
				waste[i] = new byte[10000];
			try {
				((Object) null).hashCode();
			} catch (NullPointerException e) {
				sum++;
			}
			System.out.println(line + " " + sum + " " + map.hashCode());
		}
		System.out.println("end");
	}
}
