package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	got := Table([]Row{
		{Scenario: "fast", Unit: "ns", Peer: Value{Name: "peer", Of: 104.4, CPU: 105}, Ours: Value{Of: 50, CPU: 52.25}, Target: Target{Ratio: 1.3, AimRatio: 2}},
		{Scenario: "so so", Unit: "ns", Peer: Value{Name: "peer", Of: 75}, Ours: Value{Of: 50}, Target: Target{Ratio: 1.3, AimRatio: 2}},
		{Scenario: "slow", Unit: "ns", Peer: Value{Name: "peer", Of: 50}, Ours: Value{Of: 100}, Target: Target{Ratio: 1.3}},
		{Scenario: "light", Unit: "bytes", Ours: Value{Of: 36.25}, Target: Target{Most: 64, AimMost: 40}},
		{Scenario: "heavy", Unit: "bytes", Ours: Value{Of: 65}, Target: Target{Most: 64, AimMost: 40}},
		{Scenario: "often", Unit: "1/s", More: true, Peer: Value{Name: "peer", Of: 50}, Ours: Value{Of: 100}, Target: Target{Ratio: 1.6, AimRatio: 2}},
		{Scenario: "free", Unit: "ns", Peer: Value{Name: "peer", Of: 3}, Ours: Value{Of: 1.5}},
	})
	want := `
| scenario | unit  | peer | peer (CPU) | ours (CPU) | ratio | target             | reached          |
| -------- | ----- | ---- | ---------- | ---------- | ----- | ------------------ | ---------------- |
| fast     | ns    | peer | 104 (105)  | 50 (52.2)  | 2.1×  | 1.3×, aim 2.0×     | yes, the aim too |
| so so    | ns    | peer | 75         | 50         | 1.5×  | 1.3×, aim 2.0×     | yes              |
| slow     | ns    | peer | 50         | 100        | 0.5×  | 1.3×               | **no**           |
| light    | bytes | –    | –          | 36.2       | –     | at most 64, aim 40 | yes, the aim too |
| heavy    | bytes | –    | –          | 65         | –     | at most 64, aim 40 | **no**           |
| often    | 1/s   | peer | 50         | 100        | 2.0×  | 1.6×, aim 2.0×     | yes, the aim too |
| free     | ns    | peer | 3          | 1.50       | 2.0×  |                    |                  |
`
	if diff := cmp.Diff(want, "\n"+got); diff != "" {
		t.Error(diff)
	}
}

func TestBest(t *testing.T) {
	values := []Value{{Name: "a", Of: 3}, {Name: "b", Of: 1}, {Name: "c", Of: 2}}
	if got := Best(values); got.Name != "b" {
		t.Errorf("the best is %v", got)
	}
	if got := Highest(values); got.Name != "a" {
		t.Errorf("the highest is %v", got)
	}
	if Best(nil) != (Value{}) || Highest(nil) != (Value{}) {
		t.Error("the best of none is something")
	}
}

func TestWriteSection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	const page = "above\n<!-- begin bench -->\nold\n<!-- end bench -->\nbelow\n"
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteSection(file, "bench", "new\n"); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(file)
	if diff := cmp.Diff("above\n<!-- begin bench -->\nnew\n<!-- end bench -->\nbelow\n", string(got)); diff != "" {
		t.Error(diff)
	}
	if err := WriteSection(file, "other", "new\n"); err == nil {
		t.Error("a file without the markers is no error")
	}
}
