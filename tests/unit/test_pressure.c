/* SPDX-License-Identifier: MIT */
#include "io/pressure.h"

#include "harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void decodes(const char *text, const char *want, size_t n) {
	unsigned char out[200];
	size_t got;
	ck_assert_msg(pressure_decode(text, out, &got), "%s is base64", text);
	ck_assert_uint_eq(got, n);
	ck_assert_mem_eq(out, want, n);
}

START_TEST(base64) {
	decodes("", "", 0);
	decodes("Zg==", "f", 1);
	decodes("Zm8=", "fo", 2);
	decodes("Zm9v", "foo", 3);
	decodes("Zm9vYmFy", "foobar", 6);
	decodes("c29tZSAyMDAwMDAgMjAwMDAwMAA=", "some 200000 2000000", 20);
	decodes("AP/+", "\0\xff\xfe", 3);
	decodes("++//", "\xfb\xef\xff", 3);
}
END_TEST

START_TEST(no_base64) {
	static const char *const bad[] = {"Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9 ", "Zm9v\n", "Zm-v", "Z=9v"};
	unsigned char out[200];
	size_t n;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(!pressure_decode(bad[i], out, &n), "%s is none", bad[i]);
}
END_TEST

struct world {
	struct loop *loop;
	struct pressure *pressure;
	int told;
	bool close;
};

static void on_pressure(void *arg) {
	struct world *w = arg;
	w->told++;
	if (w->close) {
		pressure_close(w->pressure);
		w->pressure = NULL;
	}
	loop_stop(w->loop);
}

static void open_fifo(struct world *w, char *dir, char *path) {
	struct error error;
	ck_assert(mkdtemp(dir));
	sprintf(path, "%s/fifo", dir);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	setenv("MEMORY_PRESSURE_WATCH", path, 1);
	setenv("MEMORY_PRESSURE_WRITE", "Zm9v", 1);
	w->loop = loop_new();
	w->pressure = pressure_open(w->loop, on_pressure, w, &error);
	ck_assert_msg(w->pressure, "%s", error.text);
	ck_assert_str_eq(pressure_path(w->pressure), path);
}

static void press(const char *path) {
	FILE *f = fopen(path, "w");
	ck_assert(f && fputs("some bytes", f) >= 0 && fclose(f) == 0);
}

static void clean(struct world *w, const char *dir, const char *path) {
	pressure_close(w->pressure);
	loop_finish(w->loop);
	loop_free(w->loop);
	unlink(path);
	rmdir(dir);
}

START_TEST(fifo) {
	struct world w = {0};
	char dir[] = "/tmp/pl-XXXXXX", path[64];
	open_fifo(&w, dir, path);
	press(path);
	loop_run(w.loop);
	ck_assert_int_eq(w.told, 1);
	clean(&w, dir, path);
}
END_TEST

START_TEST(closed_when_told) {
	struct world w = {.close = true};
	char dir[] = "/tmp/pl-XXXXXX", path[64];
	open_fifo(&w, dir, path);
	press(path);
	loop_run(w.loop);
	ck_assert_int_eq(w.told, 1);
	clean(&w, dir, path);
}
END_TEST

START_TEST(regular_file_gets_the_trigger) {
	struct loop *loop = loop_new();
	struct error error;
	char path[] = "/tmp/pl-XXXXXX", text[64] = "";
	int fd = mkstemp(path);
	setenv("MEMORY_PRESSURE_WATCH", path, 1);
	setenv("MEMORY_PRESSURE_WRITE", "c29tZSAxIDIA", 1);
	/* a regular file has no POLLPRI: epoll refuses it, and everything is undone */
	ck_assert(!pressure_open(loop, NULL, NULL, &error));
	ck_assert_msg(strstr(error.text, "cannot be watched"), "%s", error.text);
	ck_assert_int_eq(read(fd, text, sizeof text), 9);
	ck_assert_str_eq(text, "some 1 2");
	unsetenv("MEMORY_PRESSURE_WRITE");
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert(!pressure_open(loop, NULL, NULL, &error));
	ck_assert_int_eq(pread(fd, text, sizeof text, 0), 20);
	ck_assert_str_eq(text, "some 150000 2000000");
	close(fd);
	unlink(path);
	loop_free(loop);
}
END_TEST

RUN_TESTS("pressure", base64, no_base64, fifo, closed_when_told, regular_file_gets_the_trigger)
