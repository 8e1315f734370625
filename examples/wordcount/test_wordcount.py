import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from wordcount import Count, count, main, read_ignored, words_of


class WordsTest(unittest.TestCase):
    def test_punctuation_is_no_word(self):
        self.assertEqual(words_of("Well -- no, 3 times: no!"), ["Well", "no", "times", "no"])

    def test_apostrophes_and_hyphens_inside(self):
        self.assertEqual(words_of("the well-known sailor's 'hut'"), ["the", "well-known", "sailor's", "hut"])


class CountTest(unittest.TestCase):
    def test_empty(self):
        self.assertEqual(count([]), Count())
        self.assertEqual(count([]).mean_length(), 0.0)

    def test_lines_words_letters(self):
        counted = count(["two words\n", "\n", "don't\n"])
        self.assertEqual((counted.lines, counted.words, counted.letters), (3, 3, 12))

    def test_case_does_not_matter(self):
        counted = count(["The cat saw the dog.\n", "THE DOG saw The Cat.\n"])
        self.assertEqual(counted.frequencies, {"the": 4, "cat": 2, "saw": 2, "dog": 2})

    def test_ignored_words_are_words(self):
        counted = count(["a cat and A dog"], frozenset({"a", "and"}))
        self.assertEqual(counted.words, 5)
        self.assertEqual(counted.frequencies, {"cat": 1, "dog": 1})

    def test_ties_are_alphabetical(self):
        counted = count(["pear fig pear apple fig plum"])
        self.assertEqual(counted.top(3), [("fig", 2), ("pear", 2), ("apple", 1)])

    def test_merge(self):
        merged = count(["one two"]).merge(count(["two three"]))
        self.assertEqual((merged.lines, merged.words), (2, 4))
        self.assertEqual(merged.frequencies, {"one": 1, "two": 2, "three": 1})


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def run_main(self, *argv):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(argv)
        return status, out.getvalue(), err.getvalue()

    def test_two_files_and_their_sum(self):
        one = self.write("one.txt", "Rain, rain, go away.\n")
        two = self.write("two.txt", "Come again another day; rain!\n")
        status, out, _ = self.run_main(one, two, "--top", "1")
        self.assertEqual(status, 0)
        self.assertEqual(
            out.splitlines(),
            [
                "one.txt: 1 lines, 4 words, 3.5 letters a word",
                "  rain  2",
                "two.txt: 1 lines, 5 words, 4.6 letters a word",
                "  again  1",
                "all together: 2 lines, 9 words, 4.1 letters a word",
                "  rain  3",
            ],
        )

    def test_missing_file(self):
        status, out, err = self.run_main(str(self.folder / "absent.txt"))
        self.assertEqual((status, out), (1, ""))
        self.assertIn("absent.txt", err)

    def test_ignore_list(self):
        listed = Path(self.write("stop.txt", "The  # article\n\n# nothing\nof\n"))
        self.assertEqual(read_ignored(listed), frozenset({"the", "of"}))


if __name__ == "__main__":
    unittest.main()
