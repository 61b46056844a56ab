// Runs the classifier of digits that `python -m functorch_like.examples.shipping FOLDER` compiled, without Python:
//
//     run_digits FOLDER/digits.vmfb FOLDER/images.f32 FOLDER/expected.f32
//
// It prints the likeliest digit of each image, and fails where a log-probability differs by more than 1e-4.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "iree/runtime/api.h"

enum { BATCH = 8, CLASSES = 10 };
static const iree_hal_dim_t kImagesShape[4] = {BATCH, 8, 8, 1};

static int read_floats(const char* path, float* out, size_t count) {
  FILE* file = fopen(path, "rb");
  if (!file) return 0;
  size_t got = fread(out, sizeof(float), count, file);
  fclose(file);
  return got == count;
}

// Calls `digits.main` of the module that the session has loaded.
static iree_status_t classify(iree_runtime_session_t* session, const float* images, float* log_probabilities) {
  iree_runtime_call_t call;
  IREE_RETURN_IF_ERROR(iree_runtime_call_initialize_by_name(session, iree_make_cstring_view("digits.main"), &call));
  iree_hal_device_t* device = iree_runtime_session_device(session);
  iree_hal_buffer_view_t* argument = NULL;
  iree_hal_buffer_view_t* result = NULL;
  iree_status_t status = iree_hal_buffer_view_allocate_buffer_copy(
      device, iree_runtime_session_device_allocator(session), 4, kImagesShape, IREE_HAL_ELEMENT_TYPE_FLOAT_32,
      IREE_HAL_ENCODING_TYPE_DENSE_ROW_MAJOR,
      (iree_hal_buffer_params_t){
          .type = IREE_HAL_MEMORY_TYPE_DEVICE_LOCAL,
          .access = IREE_HAL_MEMORY_ACCESS_ALL,
          .usage = IREE_HAL_BUFFER_USAGE_DEFAULT,
      },
      iree_make_const_byte_span(images, BATCH * 64 * sizeof(float)), &argument);
  if (iree_status_is_ok(status)) status = iree_runtime_call_inputs_push_back_buffer_view(&call, argument);
  if (iree_status_is_ok(status)) status = iree_runtime_call_invoke(&call, 0);
  if (iree_status_is_ok(status)) status = iree_runtime_call_outputs_pop_front_buffer_view(&call, &result);
  if (iree_status_is_ok(status)) {
    status = iree_hal_device_transfer_d2h(device, iree_hal_buffer_view_buffer(result), 0, log_probabilities,
                                          BATCH * CLASSES * sizeof(float), IREE_HAL_TRANSFER_BUFFER_FLAG_DEFAULT,
                                          iree_infinite_timeout());
  }
  iree_hal_buffer_view_release(result);
  iree_hal_buffer_view_release(argument);
  iree_runtime_call_deinitialize(&call);
  return status;
}

// Makes an instance of IREE and a session on this machine's processor, and runs the module in it.
static iree_status_t run(const char* path, const float* images, float* log_probabilities) {
  iree_runtime_instance_options_t options;
  iree_runtime_instance_options_initialize(&options);
  iree_runtime_instance_options_use_all_available_drivers(&options);
  iree_runtime_instance_t* instance = NULL;
  IREE_RETURN_IF_ERROR(iree_runtime_instance_create(&options, iree_allocator_system(), &instance));

  iree_hal_device_t* device = NULL;
  iree_runtime_session_t* session = NULL;
  iree_status_t status =
      iree_runtime_instance_try_create_default_device(instance, iree_make_cstring_view("local-sync"), &device);
  if (iree_status_is_ok(status)) {
    iree_runtime_session_options_t session_options;
    iree_runtime_session_options_initialize(&session_options);
    status = iree_runtime_session_create_with_device(instance, &session_options, device,
                                                     iree_runtime_instance_host_allocator(instance), &session);
  }
  if (iree_status_is_ok(status)) status = iree_runtime_session_append_bytecode_module_from_file(session, path);
  if (iree_status_is_ok(status)) status = classify(session, images, log_probabilities);
  iree_runtime_session_release(session);
  iree_hal_device_release(device);
  iree_runtime_instance_release(instance);
  return status;
}

static int likeliest(const float* row) {
  int best = 0;
  for (int i = 1; i < CLASSES; ++i) best = row[i] > row[best] ? i : best;
  return best;
}

int main(int argc, char** argv) {
  static float images[BATCH * 64], expected[BATCH * CLASSES], log_probabilities[BATCH * CLASSES];
  if (argc != 4) {
    fprintf(stderr, "usage: run_digits digits.vmfb images.f32 expected.f32\n");
    return 2;
  }
  if (!read_floats(argv[2], images, BATCH * 64) || !read_floats(argv[3], expected, BATCH * CLASSES)) {
    fprintf(stderr, "run_digits: %s or %s is missing or cut off\n", argv[2], argv[3]);
    return 2;
  }
  iree_status_t status = run(argv[1], images, log_probabilities);
  if (!iree_status_is_ok(status)) {
    iree_status_fprint(stderr, status);
    iree_status_free(status);
    return 1;
  }
  float largest = 0;
  for (int i = 0; i < BATCH * CLASSES; ++i) {
    float difference = fabsf(log_probabilities[i] - expected[i]);
    if (!(difference <= largest)) largest = difference;  // NaN counts
  }
  for (int i = 0; i < BATCH; ++i) printf("%d ", likeliest(log_probabilities + i * CLASSES));
  printf("\nlargest difference: %.1e\n", largest);
  return largest <= 1e-4f ? 0 : 1;
}
